import {
  type AgentId,
  type ApprovalRequestedBody,
  type DelegationOpenedBody,
  type Event,
  type EventOf,
  hasAuthority,
  isAbout,
  type Join,
  type QuestionBody,
  type TodosBody,
} from '../events/index.ts';
import { type Membership, foldMembership, forkMembership, newMembership } from './membership.ts';
import {
  type Directions,
  type Directives,
  foldDirections,
  foldDirective,
  NO_DIRECTIONS,
} from './directions.ts';
import { foldRuns, type RunBook } from './run-book.ts';

/**
 * What the log of one conversation says of the work between agents and people: a fold, the same on every machine.
 *
 * Owns who waits for what, and when it is enough. Does not own deadlines: those are timers of the actors.
 *  K1  A task is opened once and ended once; a later end changes nothing.
 *  K2  A group is due when its join is met and its owner was not given it yet; it is resolved by the first turn of the
 *      owner that covers one of its ends, and never due again.
 *  K3  What is asked for in every turn costs by what is open, however many tasks there ever were.
 *  K4  A thread may be given its next task before the last one has ended: each is open until it is ended itself.
 *  K5  What a file brought is told and nothing more: it is open for nobody, and makes no conversation a thread.
 */
export type TaskOpening =
  | { kind: 'delegation'; body: DelegationOpenedBody }
  | { kind: 'question'; body: QuestionBody }
  | { kind: 'approval'; body: ApprovalRequestedBody };

/** Never changed: an end makes another of it. */
export type Task = TaskOpening & {
  id: string;
  /** Who waits for it. */
  owner: AgentId;
  group: string;
  /** Of the event that opened it. */
  seq: number;
  at: number;
  end: TaskEnd | null;
  /** A file brought it: nobody waits for it here (K5). */
  imported?: true;
};

export interface TaskEnd {
  seq: number;
  outcome: 'done' | 'failed' | 'aborted' | 'answered' | 'expired' | 'withdrawn' | 'approved' | 'denied';
}

interface Group {
  join: Join;
  tasks: readonly string[];
}

/** Never changed. */
export interface Thread {
  /** The last task that was given here, ended or not. */
  opened: DelegationOpenedBody;
  /** Without an end, oldest first (K4). */
  open: readonly DelegationOpenedBody[];
}

export interface TaskBook extends Membership {
  upTo: number;
  tasks: Map<string, Task>;
  groups: Map<string, Group>;
  /** Ids of the tasks without an end, and of the groups that are not resolved: an index (K3). */
  open: Set<string>;
  waiting: Set<string>;
  /** By the seq of their end. */
  ended: Map<number, Task>;
  /** Present where this conversation is the thread of a task. */
  thread: Thread | null;
  /** What people or a schedule last said here, as a name for all that comes of it. Empty before. */
  begun: string;
  /** All that came of it was called off. */
  off: boolean;
  /** Turns that agents began since a person last spoke, or the thread was last given a task. */
  agentTurns: number;
  todos: Map<AgentId, TodosBody>;
  directions: Directions;
  directives: Directives;
  runs: RunBook;
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
  };
}

export function foldTask(book: TaskBook, event: Event): void {
  if (event.seq <= book.upTo) return;
  book.upTo = event.seq;
  if (event.author.kind === 'user') book.agentTurns = 0;
  if (!hasAuthority(event)) return foldHistory(book, event);
  if (begins(event)) {
    book.begun = `${event.seq}-${event.at.toString(36)}`;
    book.off = false;
  }
  book.directions = foldDirections(book.directions, event);
  foldDirective(book.directives, event);
  foldRuns(book.runs, event);
  foldMembership(book, event);
  if (!isAbout(event, 'book')) return;
  switch (event.kind) {
    case 'delegation.opened':
      return event.body.thread === event.conversation ? openThread(book, event) : openDelegation(book, event);
    case 'question':
      return open(book, event, { kind: 'question', body: event.body }, event.body.question, event.body);
    case 'approval.requested': {
      const { request } = event.body;
      const alone = { group: request, join: 'all' } as const;
      return open(book, event, { kind: 'approval', body: event.body }, request, alone);
    }
    case 'delegation.completed':
    case 'delegation.aborted':
      endThread(book, event.body.delegation);
      return end(book, event);
    case 'question.answered':
    case 'approval.decided':
      return end(book, event);
    case 'turn.started':
      book.agentTurns += 1;
      return;
    case 'turn.done':
    case 'turn.failed':
    case 'turn.aborted':
      return resolve(book, event.body.covers);
    case 'todos':
      return void book.todos.set(event.author.id as AgentId, event.body);
    case 'command':
      if (event.body.from) forgetWaits(book);
      if (event.body.command === 'cancelTask') book.off = true;
      return;
  }
}

/** Neither an answer nor a call-off asks for anything new; a reminder is the agent's own doing. */
function begins({ author, kind, id, body }: Event): boolean {
  if (kind === 'message')
    return author.kind === 'user' || (author.kind === 'system' && id.startsWith('schedule:'));
  if (kind === 'command') return body.command === 'retry';
  return kind === 'run.directive' && author.kind === 'user';
}

/** What a file tells of tasks: each as it was opened, with the end that the file gives it, or none that came. */
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

/** The task that an event opens; null in the task's own thread, where nobody waits for it. */
export function openingOf(event: Event): (TaskOpening & { id: string }) | null {
  if (!isAbout(event, 'taskOpening')) return null;
  switch (event.kind) {
    case 'delegation.opened':
      if (event.body.thread === event.conversation) return null;
      return { kind: 'delegation', body: event.body, id: event.body.delegation };
    case 'question':
      return { kind: 'question', body: event.body, id: event.body.question };
    case 'approval.requested':
      return { kind: 'approval', body: event.body, id: event.body.request };
  }
}

export function endOf(event: Event): { id: string; outcome: TaskEnd['outcome'] } | null {
  if (!isAbout(event, 'taskEnd')) return null;
  switch (event.kind) {
    case 'delegation.completed':
    case 'delegation.aborted':
      return { id: event.body.delegation, outcome: event.body.outcome };
    case 'question.answered':
      return { id: event.body.question, outcome: event.body.outcome };
    case 'approval.decided':
      return { id: event.body.request, outcome: event.body.outcome };
  }
}

/** A fork begins: it is nobody's thread, and what was waited for before it is waited for in the conversation it is from. */
function forgetWaits(book: TaskBook): void {
  book.thread = null;
  book.waiting.clear();
}

type Opened = EventOf<'delegation.opened'>;

function openThread(book: TaskBook, { body }: Opened): void {
  book.thread = { opened: body, open: [...(book.thread?.open ?? []), body] };
  book.agentTurns = 0;
}

function endThread(book: TaskBook, id: string): void {
  const { thread } = book;
  if (thread) book.thread = { ...thread, open: thread.open.filter(({ delegation }) => delegation !== id) };
}

function openDelegation(book: TaskBook, event: Opened): void {
  open(book, event, { kind: 'delegation', body: event.body }, event.body.delegation, event.body);
}

function open(
  book: TaskBook,
  { author, seq, at }: Event,
  opening: TaskOpening,
  id: string,
  { group, join }: { group: string; join: Join },
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

function resolve(book: TaskBook, covers: readonly number[]): void {
  for (const seq of covers) {
    const task = book.ended.get(seq);
    if (task) book.waiting.delete(task.group);
  }
}

/** Whether the owner of a group was given what it waited for. */
export function isResolved({ groups, waiting }: TaskBook, group: string): boolean {
  return groups.has(group) && !waiting.has(group);
}

/** Whether the end of a task may wake its owner: its group is due. */
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

/** Whether this conversation is the thread of a task that goes on. */
export function isTaskOpen({ thread }: TaskBook): boolean {
  return thread !== null && thread.open.length > 0;
}

/** What an agent still waits for, oldest first. */
export function openTasks(book: TaskBook, owner: AgentId): Task[] {
  return tasksIn(book, book.open).filter((task) => task.owner === owner);
}

/** What has ended and is not given to its owner yet, since others of the group have not. */
export function heldTasks(book: TaskBook, owner: AgentId): Task[] {
  const ids = [...book.waiting].flatMap((group) => book.groups.get(group)?.tasks ?? []);
  return tasksIn(book, ids).filter(
    (task) => task.owner === owner && task.end !== null && !isDue(book, task.end.seq),
  );
}

function tasksIn({ tasks }: TaskBook, ids: Iterable<string>): Task[] {
  return [...ids].flatMap((id) => tasks.get(id) ?? []);
}

/** A copy to look ahead with; the original is not touched. */
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
