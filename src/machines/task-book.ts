import {
  type AgentId,
  type DelegationOpenedBody,
  type Event,
  type EventOf,
  hasAuthority,
  type Join,
  type KindAbout,
  type TodosBody,
} from '../events/index.ts';
import { endOf, openingOf, type TaskEnd, type TaskOpening } from './task-events.ts';
import { type Membership, foldMembership, forkMembership, keepRetired, newMembership } from './membership.ts';
import {
  type Directions,
  type Directives,
  foldDirections,
  foldDirective,
  NO_DIRECTIONS,
} from './directions.ts';
import { type CompactionBook, foldCompactions, NO_COMPACTIONS } from './compaction-book.ts';
import { foldRuns, type RunBook } from './run-book.ts';

/**
 * The tasks between agents and people in one conversation. A fold of its log, the same in every process.
 *
 * Owns which agent waits for what, and when the wait is over. Does not own deadlines: those are timers of the actors.
 *  K1  A task is opened once and ended once; a later end changes nothing.
 *  K2  A group is due when its join is met and its owner has not been given it. The first turn of the owner that covers
 *      one of its ends resolves it; a resolved group is never due again.
 *  K3  Queries of every turn cost in proportion to the open tasks, not to all tasks ever opened.
 *  K4  A thread may get its next task before the last one has ended. Each task is open until its own end.
 *  K5  An imported task is only shown: no agent waits for it, and its conversation is no thread.
 */
export interface TaskBook extends Membership {
  upTo: number;
  tasks: Map<string, Task>;
  groups: Map<string, Group>;
  /** Index of the open tasks and of the unresolved groups, by id (K3). */
  open: Set<string>;
  waiting: Set<string>;
  /** Ended tasks by the seq of their end. */
  ended: Map<number, Task>;
  /** Null unless this conversation is the thread of a task. */
  thread: Thread | null;
  /** Names the last message of a person or a schedule, and all work that follows from it. Empty before the first. */
  begun: string;
  /** All work that follows from `begun` is cancelled. */
  off: boolean;
  /** Turns that agents have begun since a person last spoke or the thread last got a task. */
  agentTurns: number;
  todos: Map<AgentId, TodosBody>;
  directions: Directions;
  directives: Directives;
  runs: RunBook;
  compactions: CompactionBook;
}

/** Immutable: an end replaces it. */
export type Task = TaskOpening & {
  id: string;
  /** The agent that waits for it. */
  owner: AgentId;
  group: string;
  /** Seq of the event that opened it. */
  seq: number;
  at: number;
  end: TaskEnd | null;
  /** Imported from a file (K5). */
  imported?: true;
};

interface Group {
  join: Join;
  tasks: readonly string[];
}

/** Immutable. */
export interface Thread {
  /** The last task given here, ended or not. */
  opened: DelegationOpenedBody;
  /** Tasks without an end, oldest first (K4). */
  open: readonly DelegationOpenedBody[];
}

export function newTaskBook(): TaskBook {
  return {
    ...newMembership(),
    upTo: 0,
    tasks: new Map(),
    groups: new Map(),
    open: new Set(),
    waiting: new Set(),
    ended: new Map(),
    thread: null,
    begun: '',
    off: false,
    agentTurns: 0,
    todos: new Map(),
    directions: NO_DIRECTIONS,
    directives: new Map(),
    runs: new Map(),
    compactions: NO_COMPACTIONS,
  };
}

export function foldTask(book: TaskBook, event: Event): void {
  if (event.seq <= book.upTo) return;
  book.upTo = event.seq;
  if (event.author.kind === 'user' && event.kind !== 'notice') book.agentTurns = 0;
  if (event.context?.imported && !hasAuthority(event)) return foldHistory(book, event);
  if (book.runs.size > 0 || event.kind === 'run.directive') foldRuns(book.runs, event);
  if (Object.hasOwn(FOLDS, event.kind))
    (FOLDS[event.kind as Folded] as (book: TaskBook, event: Event) => void)(book, event);
}

/** The kinds that change the book. */
type Folded =
  | KindAbout<'book' | 'members' | 'conversation' | 'compaction' | 'turnEnd'>
  | 'run.directive'
  | 'error';

/** What each of them changes. */
const FOLDS: { readonly [K in Folded]: (book: TaskBook, event: EventOf<K>) => void } = {
  message: foldMessage,
  'run.directive': directRun,
  command: foldCommand,
  error: foldMembership,
  'membership.changed': foldMembership,
  'mode.changed': direct,
  'phase.changed': direct,
  'delegation.opened': openDelegation,
  'delegation.ended': endDelegation,
  question: openQuestion,
  'question.answered': end,
  'approval.requested': openApproval,
  'approval.decided': end,
  'turn.started': startTurn,
  'turn.done': endTurn,
  'turn.failed': endTurn,
  'turn.aborted': endTurn,
  compaction: noteCompaction,
  'compaction.progress': noteCompaction,
  baseline: noteCompaction,
  todos: (book, { author, body }) => void book.todos.set(author.id as AgentId, body),
};

/** A message of a person or a schedule starts new work. Answers, cancellations and an agent's own reminders do not. */
function foldMessage(book: TaskBook, event: EventOf<'message'>): void {
  const { author, id } = event;
  if (author.kind === 'user' || (author.kind === 'system' && id.startsWith('schedule:'))) begin(book, event);
  if (book.away.size > 0) foldMembership(book, event);
}

function begin(book: TaskBook, { seq, at }: Event): void {
  book.begun = `${seq}-${at.toString(36)}`;
  book.off = false;
}

function directRun(book: TaskBook, event: EventOf<'run.directive'>): void {
  if (event.author.kind === 'user') begin(book, event);
  foldDirective(book.directives, event);
}

function direct(book: TaskBook, event: Event): void {
  book.directions = foldDirections(book.directions, event);
}

function noteCompaction(book: TaskBook, event: Event): void {
  book.compactions = foldCompactions(book.compactions, event);
}

function startTurn(book: TaskBook, event: EventOf<'turn.started'>): void {
  book.agentTurns += 1;
  if (event.author.id in book.compactions.requested) noteCompaction(book, event);
}

function endTurn(book: TaskBook, event: EventOf<'turn.done' | 'turn.failed' | 'turn.aborted'>): void {
  if (book.compactions.running.length > 0) noteCompaction(book, event);
  if (book.waiting.size === 0) return;
  for (const seq of event.body.covers) {
    const task = book.ended.get(seq);
    if (task) book.waiting.delete(task.group);
  }
}

/** Folds imported tasks. A task without an end in the file counts as ended. */
function foldHistory({ tasks }: TaskBook, event: Event): void {
  const opened = openingOf(event);
  if (opened) {
    const { seq, at, author } = event;
    if (tasks.has(opened.id)) return;
    const unended = { seq, outcome: opened.kind === 'delegation' ? 'aborted' : 'withdrawn' } as const;
    const more = {
      owner: author.id as AgentId,
      group: opened.id,
      seq,
      at,
      end: unended,
      imported: true,
    } as const;
    tasks.set(opened.id, { ...opened, ...more });
  }
  const ended = endOf(event);
  const task = ended ? tasks.get(ended.id) : undefined;
  if (ended && task?.imported)
    tasks.set(task.id, { ...task, end: { seq: event.seq, outcome: ended.outcome } });
}

function foldCommand(book: TaskBook, event: EventOf<'command'>): void {
  const { body } = event;
  if (body.command === 'retry') begin(book, event);
  foldMembership(book, event);
  noteCompaction(book, event);
  direct(book, event);
  if (body.from) forgetWaits(book);
  if (body.command === 'cancelTask') book.off = true;
}

/** A fork is no thread, and nothing is under way in it: that stays with the original conversation. */
function forgetWaits(book: TaskBook): void {
  book.thread = null;
  book.waiting.clear();
  keepRetired(book);
  book.compactions = { ...book.compactions, running: [], requested: {} };
}

/** The same event opens a thread in the conversation of the assignee and a task in that of the delegator. */
function openDelegation(book: TaskBook, event: EventOf<'delegation.opened'>): void {
  const { body, conversation } = event;
  if (body.thread === conversation) return openThread(book, body);
  open(book, event, { ...body, id: body.delegation }, { kind: 'delegation', body });
}

function openThread(book: TaskBook, opened: DelegationOpenedBody): void {
  book.thread = { opened, open: [...(book.thread?.open ?? []), opened] };
  book.agentTurns = 0;
}

function endThread(book: TaskBook, id: string): void {
  const { thread } = book;
  if (thread) book.thread = { ...thread, open: thread.open.filter(({ delegation }) => delegation !== id) };
}

function openQuestion(book: TaskBook, event: EventOf<'question'>): void {
  const { body } = event;
  open(book, event, { ...body, id: body.question }, { kind: 'question', body });
}

function endDelegation(book: TaskBook, event: EventOf<'delegation.ended'>): void {
  endThread(book, event.body.delegation);
  end(book, event);
}

/** An approval forms its own group. */
function openApproval(book: TaskBook, event: EventOf<'approval.requested'>): void {
  const { request } = event.body;
  open(book, event, { id: request, group: request, join: 'all' }, { kind: 'approval', body: event.body });
}

function open(
  book: TaskBook,
  { author, seq, at }: Event,
  { id, group, join }: { id: string; group: string; join: Join },
  opening: TaskOpening,
): void {
  if (book.tasks.has(id)) return;
  book.tasks.set(id, { ...opening, id, owner: author.id as AgentId, group, seq, at, end: null });
  const known = book.groups.get(group);
  book.groups.set(group, { join: known?.join ?? join, tasks: [...(known?.tasks ?? []), id] });
  book.open.add(id);
  if (!known) book.waiting.add(group);
}

function end(book: TaskBook, event: Event): void {
  const ended = endOf(event);
  const task = ended && book.tasks.get(ended.id);
  if (!task || !book.open.delete(task.id)) return;
  const done = { ...task, end: { seq: event.seq, outcome: ended.outcome } };
  book.tasks.set(task.id, done);
  book.ended.set(event.seq, done);
}

/** Whether the owner of a group has been given what it waited for. */
export function isResolved({ groups, waiting }: TaskBook, group: string): boolean {
  return groups.has(group) && !waiting.has(group);
}

/** Whether the end of a task may wake its owner, because its group is due. */
export function isDue(book: TaskBook, seq: number): boolean {
  const task = book.ended.get(seq);
  const group = task && book.waiting.has(task.group) ? book.groups.get(task.group) : undefined;
  if (!group) return false;
  if (group.join === 'first') return true;
  const ends = group.tasks.map((id) => book.tasks.get(id)?.end ?? null);
  if (!ends.includes(null)) return true;
  return (
    group.join === 'any' && ends.some((each) => each?.outcome === 'done' || each?.outcome === 'answered')
  );
}

/** Whether this conversation is the thread of an open task. */
export function isTaskOpen({ thread }: TaskBook): boolean {
  return thread !== null && thread.open.length > 0;
}

/** The open tasks of an agent, or of all, oldest first. */
export function openTasks(book: TaskBook, owner?: AgentId): Task[] {
  const tasks = tasksIn(book, book.open);
  return owner === undefined ? tasks : tasks.filter((task) => task.owner === owner);
}

/** Ended tasks that are held back from their owner because the group is not due. */
export function heldTasks(book: TaskBook, owner: AgentId): Task[] {
  const ids = [...book.waiting].flatMap((group) => book.groups.get(group)?.tasks ?? []);
  return tasksIn(book, ids).filter(
    (task) => task.owner === owner && task.end !== null && !isDue(book, task.end.seq),
  );
}

function tasksIn({ tasks }: TaskBook, ids: Iterable<string>): Task[] {
  return [...ids].flatMap((id) => tasks.get(id) ?? []);
}

/** A copy to look ahead with; the original does not change. */
export function forkTaskBook(book: TaskBook): TaskBook {
  return {
    ...book,
    ...forkMembership(book),
    tasks: new Map(book.tasks),
    groups: new Map(book.groups),
    open: new Set(book.open),
    waiting: new Set(book.waiting),
    ended: new Map(book.ended),
    todos: new Map(book.todos),
    directives: new Map(book.directives),
    runs: structuredClone(book.runs),
  };
}
