import type { ConversationId, Event, AgentId, EventOf } from '../../events/index.ts';
import { foldArrow, foldConversation, foldTalk } from './fold-talk.ts';
import { type Draft, draftOf, NO_TOKENS, ownTotals, agentOf, isAgentId, own, meetAgent } from './draft.ts';
import { foldAgents, settleConditions } from './fold-agent.ts';
import { foldTurn } from './fold-turn.ts';
import {
  type Projection,
  type Link,
  MAX_LINKS,
  MAX_ASKED,
  MAX_OPEN_TASKS,
  MAX_TASKS,
  type TaskView,
  type CompactionView,
  MAX_COMPACTIONS,
} from './model.ts';
import { endOf, openingOf } from '../../machines/task-events.ts';
import { oneLine } from './words.ts';
import { isAbout } from '../../events/aspects.ts';
import { hasEnded } from '../../machines/compaction-fold.ts';

export function newProjection(conversation: string): Projection {
  return {
    conversation: conversation as ConversationId,
    seq: 0,
    at: 0,
    began: 0,
    mode: 'agent',
    phase: null,
    archived: false,
    agents: {},
    turns: [],
    arrows: [],
    links: [],
    opening: null,
    closing: null,
    people: [],
    talk: [],
    tasks: [],
    compactions: [],
    origin: null,
    forks: [],
    totals: { events: 0, turns: 0, failed: 0, running: 0, compactions: 0, unlinked: 0, tokens: NO_TOKENS },
  };
}

/**
 * The projection with one more event. The given projection does not change, and unaffected parts stay the same objects.
 * Events already folded change nothing. An event of an unknown kind or with an unreadable body is only counted.
 */
export function foldEvent(projection: Projection, event: Event): Projection {
  return foldEvents(projection, [event]);
}

/** Folds several events with a single copy. */
export function foldEvents(projection: Projection, events: Iterable<Event>): Projection {
  let draft: Draft | null = null;
  for (const event of events) {
    if (!isNext(event, draft?.next ?? projection)) continue;
    draft ??= draftOf(projection);
    foldInto(draft, event);
  }
  return draft?.next ?? projection;
}

function isNext(event: Event, { seq }: Projection): boolean {
  const given = event as unknown;
  return typeof given === 'object' && given !== null && Number.isSafeInteger(event.seq) && event.seq > seq;
}

function foldInto(draft: Draft, event: Event): void {
  const { next } = draft;
  next.seq = event.seq;
  if (typeof event.at === 'number') {
    next.at = event.at;
    if (next.totals.events === 0) next.began = event.at;
  }
  ownTotals(draft).events += 1;
  draft.touched.clear();
  for (const fold of FOLDS) {
    try {
      fold(draft, event);
    } catch {
      // Another version may write other bodies. The other folds still apply, and the event is shown raw.
    }
  }
  settleConditions(draft, event);
}

/** Agents come first, because later folds need them. Talk comes last, so that a turn sees only earlier messages. */
const FOLDS = [
  foldConversation,
  foldAgents,
  foldTask,
  foldTurn,
  foldCompaction,
  foldArrow,
  foldLink,
  foldTalk,
] as const;

/** Counts what is addressed to agents. A task counts in the conversation where it was given, not in its thread. */
function foldLink(draft: Draft, event: Event): void {
  const { seq, author, kind } = event;
  const count = countOf(kind);
  const from = author.kind === 'agent' ? author.id : author.name;
  for (const to of addressees(draft, event)) {
    const pair = { from, by: author.kind, to };
    const index = placeOf(draft, pair);
    const { links } = draft.next;
    if (index >= MAX_LINKS) {
      ownTotals(draft).unlinked += 1;
      continue;
    }
    const link = links[index] ?? { ...pair, messages: 0, tasks: 0, handoffs: 0, seq };
    own(draft, 'links')[index] = { ...link, [count]: link[count] + 1, seq };
  }
}

type Pair = Pick<Link, 'from' | 'by' | 'to'>;

/** Number of searches in one draft after which a table is faster. */
const FEW = 20;

/** Index of the link of a pair; the next free one for a new pair. */
function placeOf(draft: Draft, { from, by, to }: Pair): number {
  const { links } = draft.next;
  draft.searches += 1;
  if (draft.searches > FEW) {
    draft.linkAt ??= new Map(links.map((link, index) => [keyOf(link), index]));
    const key = keyOf({ from, by, to });
    const index = draft.linkAt.get(key) ?? links.length;
    if (index < MAX_LINKS) draft.linkAt.set(key, index);
    return index;
  }
  const index = links.findIndex((link) => link.to === to && link.from === from && link.by === by);
  return index < 0 ? links.length : index;
}

/** An id has no space, so a space separates. */
function keyOf({ from, by, to }: Pair): string {
  return `${by} ${to} ${from}`;
}

/** In the log of the delegator, a task has no addressees; its assignee counts as one. */
function addressees(draft: Draft, { kind, body, author, to }: Event): readonly AgentId[] {
  if (kind === 'delegation.opened') return isAgentId(body.assignee) ? [body.assignee] : [];
  if (kind === 'command' || (kind === 'injection' && author.kind === 'system')) return [];
  return to.filter((id) => agentOf(draft, id) !== null);
}

function countOf(kind: Event['kind']): keyof Pick<Link, 'messages' | 'tasks' | 'handoffs'> {
  if (kind === 'delegation.opened') return 'tasks';
  return kind === 'handoff' ? 'handoffs' : 'messages';
}

/** Folds the tasks that agents wait for. Only the first opening and the first end of a task count. */
function foldTask(draft: Draft, event: Event): void {
  const opening = openingOf(event);
  if (opening) return open(draft, event, viewOf(opening));
  const ending = endOf(event);
  if (ending) end(draft, event, ending.id, ending.outcome);
}

type Opened = Pick<TaskView, 'id' | 'kind' | 'text'> & Partial<TaskView>;

function viewOf(opening: NonNullable<ReturnType<typeof openingOf>>): Opened {
  const { id, kind, body } = opening;
  const { deadline = null } = body;
  switch (kind) {
    case 'delegation':
      return { id, kind, text: oneLine(body.task), deadline, assignee: body.assignee, thread: body.thread };
    case 'question':
      return { id, kind, text: body.text.slice(0, MAX_ASKED), deadline, choices: body.choices ?? [] };
    case 'approval':
      return {
        id,
        kind,
        text: `${body.tool} ${body.args}`.slice(0, MAX_ASKED),
        deadline,
        argsHash: body.argsHash,
      };
  }
}

const NOTHING = {
  deadline: null,
  choices: [],
  argsHash: null,
  assignee: null,
  thread: null,
  outcome: null,
  endedAt: null,
};

function open(draft: Draft, event: Event, what: Opened): void {
  if (draft.next.tasks.some(({ id }) => id === what.id)) return;
  const { seq, at, author, context } = event;
  const tasks = own(draft, 'tasks');
  // An imported task is over: no agent waits for it.
  const past = context?.imported ? { outcome: 'imported', endedAt: at } : {};
  tasks.push({ ...NOTHING, owner: author.id as AgentId, seq, at, ...what, ...past });
  meetAgent(draft, author.id, event);
  drop(tasks, (task) => task.endedAt === null, MAX_OPEN_TASKS);
}

function end(draft: Draft, event: Event, id: string, outcome: string): void {
  const index = draft.next.tasks.findLastIndex((task) => task.id === id);
  const task = draft.next.tasks[index];
  if (!task || task.endedAt !== null) return;
  const tasks = own(draft, 'tasks');
  tasks[index] = { ...task, outcome, endedAt: event.at };
  meetAgent(draft, task.owner, event);
  drop(tasks, ({ endedAt }) => endedAt !== null, MAX_TASKS);
}

/** Drops the oldest task of a kind when there are too many. */
function drop(tasks: TaskView[], isOne: (task: TaskView) => boolean, most: number): void {
  if (tasks.length <= most || tasks.filter(isOne).length <= most) return;
  tasks.splice(tasks.findIndex(isOne), 1);
}

type Progress = EventOf<'compaction.progress'>;

/** Folds the compactions: at most one at a time for each agent. */
function foldCompaction(draft: Draft, event: Event): void {
  if (isAbout(event, 'turnEnd')) return breakOff(draft, event);
  if (!isAbout(event, 'compaction')) return;
  switch (event.kind) {
    case 'compaction.progress':
      return event.body.phase === 'started' ? add(draft, opened(event)) : goOn(draft, event);
    case 'compaction':
      return foldSummary(draft, event);
    case 'baseline':
      return adopt(draft, event);
  }
}

function breakOff(draft: Draft, { author, at }: Event): void {
  change(draft, author.id, () => ({ phase: 'failed', message: 'the turn ended first', endedAt: at }));
}

function opened({ seq, at, body }: Progress): CompactionView {
  const { agent, reason, strategy = null, range = null, tokens, message = null } = body;
  const { before, after } = tokens;
  return {
    seq,
    at,
    agent,
    phase: 'started',
    reason,
    strategy,
    range,
    tokens: { before, after },
    reduced: null,
    summary: null,
    summarySeq: null,
    message,
    endedAt: null,
  };
}

/** Later progress of a compaction. Opens the compaction if the log lacks its start. */
function goOn(draft: Draft, event: Progress): void {
  const { agent, phase, strategy, range, tokens, message } = event.body;
  if (openIndex(draft, agent) < 0) add(draft, opened(event));
  const isLast = hasEnded(event.body);
  const isDone = isLast && phase !== 'failed';
  change(draft, agent, (known) => ({
    phase: isLast || phase === 'summarising' ? phase : known.phase,
    strategy: strategy ?? known.strategy,
    range: range ?? known.range,
    tokens: { before: known.tokens.before, after: tokens.after },
    reduced: isDone ? reduction(known.tokens.before, tokens.after) : null,
    message: message ?? (isDone ? null : known.message),
    endedAt: isLast ? event.at : null,
  }));
  if (isDone) ownTotals(draft).compactions += 1;
}

function reduction(before: number, after: number | null): number | null {
  if (after === null || before <= 0) return null;
  return Math.max(0, Math.round((100 * (before - after)) / before));
}

/** The summary. Its tokens are counted in the turn that made it. A log without progress has only this event. */
function foldSummary(draft: Draft, { id, seq, at, body }: EventOf<'compaction'>): void {
  const { by, reason, strategy, upTo, tokens } = body;
  const range = { from: 1, upTo };
  if (openIndex(draft, by) >= 0) {
    return change(draft, by, () => ({ summary: id, summarySeq: seq, strategy, range }));
  }
  const { before, after } = tokens;
  const message = null;
  const reduced = reduction(before, after);
  const ended = { phase: 'done', reduced, message, endedAt: at } as const;
  add(draft, {
    seq,
    at,
    agent: by,
    reason,
    strategy,
    range,
    tokens: { before, after },
    summary: id,
    summarySeq: seq,
    ...ended,
  });
  ownTotals(draft).compactions += 1;
}

/** An agent may adopt the compaction of another one. */
function adopt(draft: Draft, { author, body }: EventOf<'baseline'>): void {
  const id = body.adopts?.compaction ?? null;
  if (id === null) return;
  const summarySeq = draft.next.compactions.findLast(({ summary }) => summary === id)?.summarySeq ?? null;
  change(draft, author.id, () => ({ summary: id, summarySeq }));
}

function openIndex({ next }: Draft, agent: string): number {
  return next.compactions.findLastIndex((each) => each.agent === agent && each.endedAt === null);
}

function change(draft: Draft, agent: string, what: (known: CompactionView) => Partial<CompactionView>): void {
  const index = openIndex(draft, agent);
  const known = draft.next.compactions[index];
  if (known) own(draft, 'compactions')[index] = { ...known, ...what(known) };
}

function add(draft: Draft, compaction: CompactionView): void {
  const compactions = own(draft, 'compactions');
  compactions.push(compaction);
  if (compactions.length <= MAX_COMPACTIONS) return;
  compactions.splice(
    Math.max(
      0,
      compactions.findIndex(({ endedAt }) => endedAt !== null),
    ),
    1,
  );
}
