import { computed, effect, signal } from '@preact/signals';
import type { AgentView } from '../../../src/library/projection/model.ts';
import { shownCondition } from '../../../src/library/projection/needs.ts';
import { STANDING_STATES, standingOf } from '../../../src/library/projection/standing.ts';
import type { Holder } from '../../../src/library/inspect/stuck.ts';
import type { StuckLine, StuckReport } from '../../../src/library/troupe.ts';
import type { Inbox, InboxLine } from '../../../src/http/inbox.ts';
import { api, type InboxQuery, type Queues } from './api.ts';
import { connection, failed, isLost, reached } from './connection.ts';
import { live, onEvents } from './live.ts';
import { conversation, type Route, route } from './route.ts';
import { nameOf } from './selection.ts';

/** The server's answer for the filters in the address; with an open conversation, without filters. */
export const inbox = signal<Inbox | null>(null);
export const queues = signal<Queues | null>(null);
export const stuck = signal<StuckReport | null>(null);
/** The first line of stuck work of each conversation. */
export const stuckIn = computed(() => {
  const lines = stuck.value?.stuck.toReversed() ?? [];
  const own = lines.map((line) => [line.conversation, line] as const);
  // A conversation is as stuck as the nested tasks that it waits for.
  const roots = lines.map((line) => [rootOf(line.conversation), line] as const);
  return new Map<string, StuckLine>([...roots, ...own]);
});
/** Stuck work that does not wait for people. Work that waits for people is in the list. */
export const broken = computed(
  () => stuck.value?.stuck.filter(({ reason }) => reason.kind !== 'unanswered') ?? [],
);
/** The conversation after which a thread is named, or the conversation itself. */
export const rootOf = (id: string) => id.replace(/\.[a-z]-[0-9a-f]{12}$/, '');
const MAX_SUBJECT = 40;

/** A conversation by its first words where the list has them, else by its id; a thread without them as a task of its root. */
export function placeNamed(id: string): string {
  const text = inbox.value?.lines.find((line) => line.id === id)?.about?.text ?? '';
  const root = rootOf(id);
  if (text === '') return root === id ? id : `a task of ${placeNamed(root)}`;
  return `“${text.length > MAX_SUBJECT ? `${text.slice(0, MAX_SUBJECT)}…` : text}”`;
}

/** An agent in a conversation, both as people know them. */
export const placeOf = ({ agent, conversation: id }: Pick<StuckLine, 'agent' | 'conversation'>): string =>
  `${nameOf(agent)} in ${placeNamed(id)}`;

/** Why something waits, in the server's words, with the holder of its slot as people know it. */
export function waitWords({ words, heldBy: [holder] = [] }: { words: string; heldBy?: Holder[] }): string {
  if (!holder) return words;
  return words.replace(`@${holder.agent} in ${holder.conversation}`, () => placeOf(holder));
}
/** The same of stuck work. */
export const stuckWords = ({ words, reason }: Pick<StuckLine, 'words' | 'reason'>): string =>
  waitWords({ words, ...(reason.kind === 'slot_full' && { heldBy: reason.heldBy }) });

/** Whether home shows the queue. Beside a conversation it is always shown. */
export const isQueueShown = signal(false);

/** Why a queued agent of the open conversation has not begun, in the server's words. */
export function waitOf(agent: AgentView): string | null {
  if (shownCondition(agent) !== 'queued' && agent.turn === null) return null;
  const waiting = queues.value?.turns.waiting ?? [];
  const found = waiting.find((line) => line.agent === agent.id && line.conversation === conversation.value);
  return found ? waitWords(found) : null;
}

/** The lines, with the open conversation brought up to date; null before the first answer. */
export const conversations = computed<readonly InboxLine[] | null>(() => {
  const lines = inbox.value?.lines;
  const open = live.value;
  if (!lines || !open) return lines ?? null;
  return lines.map((line) =>
    line.id !== open.conversation || line.head > open.seq
      ? line
      : { ...line, ...standingOf(open), dollars: line.dollars, head: open.seq, at: open.at },
  );
});

export const KINDS = ['conversation', 'thread'] as const;

/** Periods of the filter by time, ms. */
export const PERIODS = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_592_000_000 } as const;

const REFRESH_MS = 5_000;
/** Pause between tries while the server does not respond, ms. */
const RETRY_MS = 1_000;
/** Delay after the last of a burst of events, ms. */
const SETTLE_MS = 500;
const PAGE = 50;
/** Most pages that are read at each refresh. To see more, the reader must filter. */
const MAX_PAGES = 10;

/** All lines in which somebody has to act come with the first page, at most so many, so that they can be grouped by cause. */
const MAX_URGENT = 500;

const pages = signal(1);
export const canGrow = computed(() => inbox.value?.next != null && pages.value < MAX_PAGES);

export function showMore(): void {
  pages.value += 1;
  void watchInbox();
}

/** Reads the list again after a command about one of its lines. */
export function refreshInbox(): void {
  void watchInbox();
}

/** The time that a period of the address began at; undefined for any time. */
export function sinceOf(since: string): number | undefined {
  const period = PERIODS[since as keyof typeof PERIODS];
  return period === undefined ? undefined : Date.now() - period;
}

/** The filters in an address. */
export function filterOf({ state, agent, owner, since, order, of, q }: Route): InboxQuery {
  return {
    state: STANDING_STATES.includes(state as never) ? state : undefined,
    agent: agent ?? undefined,
    owner,
    from: sinceOf(since),
    order: order === '' ? undefined : order,
    kind: KINDS.find((each) => each === of),
    q: q.trim(),
  };
}

async function readPages(): Promise<Inbox> {
  const query = conversation.peek() === null ? filterOf(route.peek()) : {};
  const isHome = conversation.peek() === null && query.state === undefined && query.order === undefined;
  const first = await api.inbox({ ...query, limit: PAGE, urgent: isHome ? MAX_URGENT : undefined });
  const lines = new Map(first.lines.map((line) => [line.id, line]));
  let { next } = first;
  for (let page = 1; page < pages.peek() && next !== null; page += 1) {
    const more: Inbox = await api.inbox({ ...query, limit: PAGE, after: next });
    // A conversation that changed in the meantime may be in both.
    for (const line of more.lines) if (!lines.has(line.id)) lines.set(line.id, line);
    next = more.next;
  }
  return { ...first, lines: [...lines.values()], next };
}

let asked = 0;

async function refresh(): Promise<void> {
  asked += 1;
  const mine = asked;
  const [list, depth, report] = await Promise.allSettled([readPages(), api.queues(), api.stuck()]);
  // The filters have changed in the meantime.
  if (mine !== asked) return;
  if (list.status === 'fulfilled') inbox.value = list.value;
  // An open conversation has a stream, which tells more about the connection.
  if (conversation.peek() === null && list.status === 'fulfilled') reached();
  else if (conversation.peek() === null && list.status === 'rejected') failed(list.reason);
  if (depth.status === 'fulfilled') queues.value = depth.value;
  if (report.status === 'fulfilled') stuck.value = report.value;
}

let timer: ReturnType<typeof setTimeout> | undefined;

async function watchInbox(): Promise<void> {
  clearTimeout(timer);
  if (document.visibilityState === 'visible') await refresh();
  clearTimeout(timer);
  timer = setTimeout(() => void watchInbox(), isLost.peek() ? RETRY_MS : REFRESH_MS);
}

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void watchInbox();
});
let settling: ReturnType<typeof setTimeout> | undefined;
// An event of the open conversation often starts work in other conversations.
onEvents(() => {
  clearTimeout(settling);
  settling = setTimeout(() => void watchInbox(), SETTLE_MS);
});

/** The filters to request. After a change, the list is read anew, from its first page. */
const wanted = computed(() => {
  const { conversation: open, state, agent, owner, since, order, of, q } = route.value;
  return open ?? JSON.stringify([state, agent, owner, since, order, of, q]);
});
/** The list may take a while, so the open conversation is loaded first. */
const isOpening = computed(() => conversation.value !== null && connection.value.state === 'opening');
effect(() => {
  void wanted.value;
  pages.value = 1;
  if (!isOpening.value) void watchInbox();
});
