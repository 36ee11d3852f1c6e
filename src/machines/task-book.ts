import {
  type AgentId,
  type ApprovalRequestedBody,
  type DelegationOpenedBody,
  type Event,
  isTaskEnd,
  type Join,
  type LeftBody,
  type QuestionBody,
  type TodosBody,
} from '../events/index.ts';
import { foldRuns, newRunBook, type RunBook } from './run-book.ts';

/**
 * What the log of one conversation says of tasks: a fold, the same on every machine.
 *
 * Owns who waits for what, and when it is enough. Does not own deadlines: those are timers of the actors.
 *  K1  A task is opened once and ended once; a later end changes nothing.
 *  K2  A group is due when its join is met and its owner was not given it yet; it is resolved by the first turn of the
 *      owner that covers one of its ends, and never due again.
 */
export type TaskOpening =
  | { kind: 'delegation'; body: DelegationOpenedBody }
  | { kind: 'question'; body: QuestionBody }
  | { kind: 'approval'; body: ApprovalRequestedBody };

export type Task = TaskOpening & {
  id: string;
  /** Who waits for it. */
  owner: AgentId;
  group: string;
  /** Of the event that opened it. */
  seq: number;
  at: number;
  end: TaskEnd | null;
};

export interface TaskEnd {
  seq: number;
  outcome: 'done' | 'failed' | 'aborted' | 'answered' | 'expired' | 'withdrawn' | 'approved' | 'denied';
}

interface Group {
  join: Join;
  tasks: Task[];
  resolved: boolean;
}

export interface TaskBook {
  upTo: number;
  tasks: Map<string, Task>;
  groups: Map<string, Group>;
  /** By the seq of their end. */
  ended: Map<number, Task>;
  /** The task that this conversation is the thread of, the last one where there were several. */
  thread: { opened: DelegationOpenedBody; seq: number; isOpen: boolean } | null;
  /** Turns that agents began since a person last spoke, or the thread was last given a task. */
  agentTurns: number;
  todos: Map<AgentId, TodosBody>;
  /** Agents that have left, and whether they are blocked. */
  away: Map<AgentId, { blocked: boolean }>;
  /** The stretches of the log for which they were away, without the events at their ends. */
  absences: Map<AgentId, { from: number; to: number }[]>;
  /** What agents that were let in see of what came before. */
  joined: Map<AgentId, 'full' | 'summary' | 'fresh'>;
  archived: boolean;
  /** Mode, phase and runs of the conversation. */
  runs: RunBook;
}

export function newTaskBook(): TaskBook {
  return {
    upTo: 0,
    tasks: new Map(),
    groups: new Map(),
    ended: new Map(),
    thread: null,
    agentTurns: 0,
    todos: new Map(),
    away: new Map(),
    absences: new Map(),
    joined: new Map(),
    archived: false,
    runs: newRunBook(),
  };
}

export function foldTask(book: TaskBook, event: Event): void {
  if (event.seq <= book.upTo) return;
  book.upTo = event.seq;
  if (event.author.kind === 'user') book.agentTurns = 0;
  foldRuns(book.runs, event);
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
      return end(book, event.body.delegation, { seq: event.seq, outcome: event.body.outcome });
    case 'question.answered':
      return end(book, event.body.question, { seq: event.seq, outcome: event.body.outcome });
    case 'approval.decided':
      return end(book, event.body.request, { seq: event.seq, outcome: event.body.outcome });
    case 'turn.started':
      book.agentTurns += 1;
      return;
    case 'turn.done':
    case 'turn.failed':
    case 'turn.aborted':
      return resolve(book, event.body.covers);
    case 'todos':
      return void book.todos.set(event.author.id as AgentId, event.body);
    case 'left':
      return leave(book, event.body, event.seq);
    case 'joined':
      return join(book, event);
    case 'message':
      if (event.author.kind === 'user') for (const agent of event.to) comeBack(book, agent, event.seq);
      return;
    case 'archived':
    case 'reopened':
      book.archived = event.kind === 'archived';
      return;
    default:
  }
}

function leave(book: TaskBook, { agent, blocked = false }: LeftBody, seq: number): void {
  if (!book.away.has(agent)) {
    const absences = book.absences.get(agent) ?? [];
    book.absences.set(agent, [...absences, { from: seq, to: Number.MAX_SAFE_INTEGER }]);
  }
  book.away.set(agent, { blocked });
}

/** That an agent takes its first turn, which the runtime notes, lifts no block that came meanwhile. */
function join(book: TaskBook, { author, body, seq }: Extract<Event, { kind: 'joined' }>): void {
  if (!book.joined.has(body.agent) || author.kind !== 'system') book.joined.set(body.agent, body.policy);
  if (author.kind !== 'system') comeBack(book, body.agent, seq);
}

/** Let in again, or addressed by a person: a message that brings it back is heard itself. */
function comeBack(book: TaskBook, agent: AgentId, seq: number): void {
  const last = book.away.has(agent) ? book.absences.get(agent)?.at(-1) : undefined;
  if (last) last.to = seq;
  book.away.delete(agent);
}

/** Whether an event that addresses the agent does not wake it, because it was away. The ends of tasks wait for it. */
export function isUnheard({ away, absences }: TaskBook, agent: AgentId, event: Event): boolean {
  if (isTaskEnd(event)) return away.has(agent);
  return absences.get(agent)?.some(({ from, to }) => event.seq > from && event.seq < to) ?? false;
}

type Opened = Extract<Event, { kind: 'delegation.opened' }>;

function openThread(book: TaskBook, { body, seq }: Opened): void {
  book.thread = { opened: body, seq, isOpen: true };
  book.agentTurns = 0;
}

function endThread(book: TaskBook, id: string): void {
  if (book.thread?.opened.delegation === id) book.thread.isOpen = false;
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
  const task: Task = { ...opening, id, owner: author.id as AgentId, group, seq, at, end: null };
  book.tasks.set(id, task);
  const known = book.groups.get(group);
  if (known) known.tasks.push(task);
  else book.groups.set(group, { join, tasks: [task], resolved: false });
}

function end(book: TaskBook, id: string, ended: TaskEnd): void {
  const task = book.tasks.get(id);
  if (!task || task.end) return;
  task.end = ended;
  book.ended.set(ended.seq, task);
}

function resolve(book: TaskBook, covers: readonly number[]): void {
  for (const seq of covers) {
    const task = book.ended.get(seq);
    const group = task && book.groups.get(task.group);
    if (group) group.resolved = true;
  }
}

/** Whether the end of a task may wake its owner: its group is due. */
export function isDue(book: TaskBook, seq: number): boolean {
  const task = book.ended.get(seq);
  const group = task && book.groups.get(task.group);
  if (!group || group.resolved) return false;
  const ended = group.tasks.flatMap((each) => (each.end ? [each.end] : []));
  const all = ended.length === group.tasks.length;
  if (group.join === 'all') return all;
  if (group.join === 'first') return ended.length > 0;
  return all || ended.some(({ outcome }) => outcome === 'done' || outcome === 'answered');
}

/** What an agent still waits for, oldest first. */
export function openTasks(book: TaskBook, owner: AgentId): Task[] {
  return [...book.tasks.values()].filter((task) => task.owner === owner && task.end === null);
}

/** What has ended and is not given to its owner yet, since others of the group have not. */
export function heldTasks(book: TaskBook, owner: AgentId): Task[] {
  return [...book.tasks.values()].filter((task) => {
    const { end } = task;
    if (task.owner !== owner || end === null || isDue(book, end.seq)) return false;
    return book.groups.get(task.group)?.resolved === false;
  });
}
