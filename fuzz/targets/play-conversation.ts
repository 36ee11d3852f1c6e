import { createView, eventText, foldEvent, minute, phaseItem, type View } from '../../src/context/index.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import type {
  AgentId,
  Author,
  ConversationId,
  Event,
  EventDraft,
  PromptMessage,
  TenantId,
  TurnId,
} from '../../src/events/index.ts';
import { promptOf } from '../../test/support/log-player.ts';
import { SECRET, withSeen } from './hostile-text.ts';

/** A statement and its author; `turn` is a turn of the reader. */
export interface Said {
  kind: string;
  who: Author['kind'];
  id: string;
  name: string;
  to: string[];
  text: string;
  /** A second text: the name of an attachment or a tool, or another field of a handoff. */
  more: string;
}

export const READER = 'ada';

/** An event as the checker knows it: what should be shown, independent of how it is rendered. */
export interface Fact {
  seq: number;
  author: Author;
  kind: Event['kind'];
  call: string | null;
}

export interface Played {
  messages: readonly PromptMessage[];
  facts: ReadonlyMap<number, Fact>;
}

const FENCES = /<\/?[a-z]+-[0-9a-f]{8}>|^\[[^\]\n]* #\d{6}\]|^#(?:\d{6})?$/gm;

/** Plays a conversation as the log would hold it, and passes on every prompt that the reader is sent. */
export function playConversation(said: readonly Said[], look: (played: Played) => void): void {
  const view = createView(READER as AgentId, SECRET);
  const facts = new Map<number, Fact>();
  let seq = 0;
  let turns = 0;
  let seen: string[] = [];
  function append(draft: Omit<EventDraft, 'id'>): void {
    seq += 1;
    const event = logged({ ...draft, id: `e${seq}` } as EventDraft, seq);
    const call = event.kind === 'tool.result' ? event.body.call : null;
    facts.set(seq, { seq, author: event.author, kind: event.kind, call });
    foldEvent(view, event);
  }
  function show(): void {
    const { messages } = promptOf(view);
    seen = messages.flatMap(({ role, content }) => (role === 'user' ? (content.match(FENCES) ?? []) : []));
    look({ messages, facts });
  }
  for (const each of said) {
    const text = { text: withSeen(each.text, seen), more: withSeen(each.more, seen) };
    if (each.kind !== 'turn') {
      append(draftOf({ ...each, ...text }, seq + 1));
      continue;
    }
    turns += 1;
    takeTurn(view, { turns, upTo: seq, ...text }, append, show);
  }
  if (view.turn !== null) return;
  takeTurn(view, { turns: turns + 1, upTo: seq, text: '', more: '' }, append, show);
}

interface Turn {
  turns: number;
  upTo: number;
  text: string;
  more: string;
}

/** A call and its result, which arrives late if the second text says so, and an answer. */
function takeTurn(
  view: View,
  { turns, upTo, text, more }: Turn,
  append: (draft: Omit<EventDraft, 'id'>) => void,
  show: () => void,
): void {
  const turn = `c:${READER}:${turns}` as TurnId;
  const inputs = view.pending.filter(({ to }) => to.some((each) => each === READER)).map(({ seq }) => seq);
  const own = { author: { kind: 'agent' as const, id: READER, name: READER }, to: [] as AgentId[], turn };
  const live = { time: minute(T0 + upTo * 20_000), ...phaseItem(view.directions.phase, false) };
  append({
    ...own,
    kind: 'turn.started',
    body: { upTo, inputs, live, join: 'full', baseline: 'b' },
  });
  show();
  const call = `k${turns}`;
  append({
    ...own,
    kind: 'step',
    body: { index: 0, content: '', calls: [{ id: call, name: 'look', args: '{}' }] },
  });
  const outcome = more.length % 2 === 0 ? ('done' as const) : ('failed' as const);
  const result = {
    ...own,
    kind: 'tool.result' as const,
    body: { call, name: 'look', outcome, content: marked(upTo + 3, text) },
  };
  const isLate = more.length % 5 === 0;
  if (isLate) append({ ...own, kind: 'turn.aborted', body: { covers: inputs, by: 'u', partial: '' } });
  else append(result);
  if (!isLate) show();
  if (isLate)
    append({
      ...result,
      body: { ...result.body, name: more.slice(0, 256) || 'x', content: marked(upTo + 4, text) },
    });
  else
    append({
      ...own,
      kind: 'turn.aborted',
      body: { covers: inputs, by: 'u', partial: marked(upTo + 4, more) },
    });
}

/** The summary that represents a compaction of such texts. */
export function compacted(said: readonly Said[]): string {
  const quotes = said.map(({ text, name }, index) => ({
    seq: index + 1,
    speaker: name,
    text: marked(index + 1, text),
    cut: false,
  }));
  const [first] = said;
  const text = marked(0, first?.text ?? '');
  const body = {
    number: 1,
    upTo: said.length,
    from: 1,
    strategy: 'summary',
    by: READER,
    summary: text,
    listing: marked(0, first?.more ?? ''),
    quotes,
    demands: '',
  };
  return renderCompaction(body as unknown as Parameters<typeof renderCompaction>[0], SECRET);
}

/** The text between marks that identify its event. */
export function marked(n: number, text: string): string {
  return `w${n}a${text}w${n}z`;
}

function draftOf({ kind, who, id, name, to, text, more }: Said, n: number): Omit<EventDraft, 'id'> {
  const envelope = { author: { kind: who, id, name }, to: to as AgentId[] };
  const words = marked(n, text);
  const rest = marked(n, more);
  switch (kind) {
    case 'handoff': {
      const summary = {
        goal: words,
        done: rest,
        state: '',
        next: '',
        openQuestions: [rest],
        artifacts: [rest],
        why: '',
      };
      return { ...envelope, kind, body: { summary } };
    }
    case 'phase.changed': {
      const summary = {
        goal: words,
        done: '',
        state: '',
        next: rest,
        openQuestions: [],
        artifacts: [],
        why: '',
      };
      return { ...envelope, kind, body: { phase: more.slice(0, 200) || 'p', instructions: '', summary } };
    }
    case 'turn.failed':
      return { ...envelope, kind, body: { covers: [], code: 'c', message: 'm', partial: words } };
    case 'step':
      return {
        ...envelope,
        kind,
        body: { index: 0, content: words, calls: [{ id: 'k', name: 'n', args: '{}' }] },
      };
    case 'injection':
      return { ...envelope, kind, body: { content: words, oneStep: false } };
    case 'delegation.ended':
      return { ...envelope, kind, body: { delegation: 'd-1', outcome: 'done', result: words } };
    case 'attachment': {
      const file = {
        type: 'file' as const,
        hash: 'a'.repeat(64),
        mediaType: 'text/x',
        name: marked(n, more.slice(0, 60)),
        bytes: 1,
      };
      const given = { type: 'text' as const, mediaType: 'text/plain', name: 'n', text: rest };
      return { ...envelope, kind: 'message', body: { content: words, attachments: [given, file] } };
    }
    default:
      return { ...envelope, kind: 'message', body: { content: words } };
  }
}

const T0 = Date.UTC(2026, 0, 1);

function logged(draft: EventDraft, seq: number): Event {
  const envelope = {
    tenant: 'default' as TenantId,
    conversation: 'c' as ConversationId,
    seq,
    at: T0 + seq * 20_000,
  };
  return { ...draft, ...envelope, tokens: Math.ceil(eventText(draft).length / 4) };
}
