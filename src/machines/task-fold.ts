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
import {
  type Membership,
  foldMembership,
  forkMembership,
  keepRetired,
  newMembership,
  isRetired,
} from './membership.ts';
import {
  type Directions,
  type Directives,
  foldDirections,
  foldDirective,
  NO_DIRECTIONS,
} from './directions.ts';
import { type CompactionFold, foldCompactions, NO_COMPACTIONS } from './compaction-fold.ts';
import { foldRuns, type RunFold } from './run-fold.ts';
import { availabilityNoteOf } from './availability-fold.ts';

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
export interface TaskFold extends Membership {
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
  runs: RunFold;
  compactions: CompactionFold;
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
interface Thread {
  /** The last task given here, ended or not. */
  opened: DelegationOpenedBody;
  /** Tasks without an end, oldest first (K4). */
  open: readonly DelegationOpenedBody[];
}

export function newTaskFold(): TaskFold {
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

export function foldTask(fold: TaskFold, event: Event): void {
  if (event.seq <= fold.upTo) return;
  fold.upTo = event.seq;
  if (event.author.kind === 'user' && event.kind !== 'notice') fold.agentTurns = 0;
  if (event.context?.imported && !hasAuthority(event)) return foldHistory(fold, event);
  if (fold.runs.size > 0 || event.kind === 'run.directive') foldRuns(fold.runs, event);
  if (Object.hasOwn(FOLDS, event.kind))
    (FOLDS[event.kind as Folded] as (fold: TaskFold, event: Event) => void)(fold, event);
}

type Folded =
  | KindAbout<'tasks' | 'members' | 'conversation' | 'compaction' | 'turnEnd'>
  | 'run.directive'
  | 'error';

const FOLDS: { readonly [K in Folded]: (fold: TaskFold, event: EventOf<K>) => void } = {
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
  todos: (fold, { author, body }) => void fold.todos.set(author.id as AgentId, body),
};

/** A message of a person or a schedule starts new work. Answers, cancellations and an agent's own reminders do not. */
function foldMessage(fold: TaskFold, event: EventOf<'message'>): void {
  const { author, id } = event;
  if (author.kind === 'user' || (author.kind === 'system' && id.startsWith('schedule:'))) begin(fold, event);
  if (fold.away.size > 0) foldMembership(fold, event);
}

function begin(fold: TaskFold, { seq, at }: Event): void {
  fold.begun = `${seq}-${at.toString(36)}`;
  fold.off = false;
}

function directRun(fold: TaskFold, event: EventOf<'run.directive'>): void {
  if (event.author.kind === 'user') begin(fold, event);
  foldDirective(fold.directives, event);
}

function direct(fold: TaskFold, event: Event): void {
  fold.directions = foldDirections(fold.directions, event);
}

function noteCompaction(fold: TaskFold, event: Event): void {
  fold.compactions = foldCompactions(fold.compactions, event);
}

function startTurn(fold: TaskFold, event: EventOf<'turn.started'>): void {
  fold.agentTurns += 1;
  if (event.author.id in fold.compactions.requested) noteCompaction(fold, event);
}

function endTurn(fold: TaskFold, event: EventOf<'turn.done' | 'turn.failed' | 'turn.aborted'>): void {
  if (fold.compactions.running.length > 0) noteCompaction(fold, event);
  if (fold.waiting.size === 0) return;
  for (const seq of event.body.covers) {
    const task = fold.ended.get(seq);
    if (task) fold.waiting.delete(task.group);
  }
}

/** Folds imported tasks. A task without an end in the file counts as ended. */
function foldHistory({ tasks }: TaskFold, event: Event): void {
  const opened = openingOf(event);
  if (opened) {
    const { seq, at, author } = event;
    if (tasks.has(opened.id)) return;
    const unended = { seq, outcome: 'cancelled' } as const;
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

function foldCommand(fold: TaskFold, event: EventOf<'command'>): void {
  const { body } = event;
  if (body.command === 'retry') begin(fold, event);
  foldMembership(fold, event);
  noteCompaction(fold, event);
  direct(fold, event);
  if (body.from) forgetWaits(fold);
  if (body.command === 'cancelTask') fold.off = true;
}

/** In a fork there is no thread and nothing is under way: all that stays with the original conversation. */
function forgetWaits(fold: TaskFold): void {
  fold.thread = null;
  fold.waiting.clear();
  keepRetired(fold);
  fold.compactions = { ...fold.compactions, running: [], requested: {} };
}

/** The same event opens a thread in the conversation of the assignee and a task in that of the delegator. */
function openDelegation(fold: TaskFold, event: EventOf<'delegation.opened'>): void {
  const { body, conversation } = event;
  if (body.thread === conversation) return openThread(fold, body);
  open(fold, event, { ...body, id: body.delegation }, { kind: 'delegation', body });
}

function openThread(fold: TaskFold, opened: DelegationOpenedBody): void {
  fold.thread = { opened, open: [...(fold.thread?.open ?? []), opened] };
  fold.agentTurns = 0;
}

function endThread(fold: TaskFold, id: string): void {
  const { thread } = fold;
  if (thread) fold.thread = { ...thread, open: thread.open.filter(({ delegation }) => delegation !== id) };
}

function openQuestion(fold: TaskFold, event: EventOf<'question'>): void {
  const { body } = event;
  open(fold, event, { ...body, id: body.question }, { kind: 'question', body });
}

function endDelegation(fold: TaskFold, event: EventOf<'delegation.ended'>): void {
  endThread(fold, event.body.delegation);
  end(fold, event);
}

/** An approval forms its own group. */
function openApproval(fold: TaskFold, event: EventOf<'approval.requested'>): void {
  const { request } = event.body;
  open(fold, event, { id: request, group: request, join: 'all' }, { kind: 'approval', body: event.body });
}

function open(
  fold: TaskFold,
  { author, seq, at }: Event,
  { id, group, join }: { id: string; group: string; join: Join },
  opening: TaskOpening,
): void {
  if (fold.tasks.has(id)) return;
  fold.tasks.set(id, { ...opening, id, owner: author.id as AgentId, group, seq, at, end: null });
  const known = fold.groups.get(group);
  fold.groups.set(group, { join: known?.join ?? join, tasks: [...(known?.tasks ?? []), id] });
  fold.open.add(id);
  if (!known) fold.waiting.add(group);
}

function end(fold: TaskFold, event: Event): void {
  const ended = endOf(event);
  const task = ended && fold.tasks.get(ended.id);
  if (!task || !fold.open.delete(task.id)) return;
  const done = { ...task, end: { seq: event.seq, outcome: ended.outcome } };
  fold.tasks.set(task.id, done);
  fold.ended.set(event.seq, done);
}

/** Whether the owner of a group has been given what it waited for. */
export function isResolved({ groups, waiting }: TaskFold, group: string): boolean {
  return groups.has(group) && !waiting.has(group);
}

/** Whether the end of a task may wake its owner, because its group is due. */
export function isDue(fold: TaskFold, seq: number): boolean {
  const task = fold.ended.get(seq);
  const group = task && fold.waiting.has(task.group) ? fold.groups.get(task.group) : undefined;
  if (!group) return false;
  if (group.join === 'first') return true;
  const ends = group.tasks.map((id) => fold.tasks.get(id)?.end ?? null);
  if (!ends.includes(null)) return true;
  return (
    group.join === 'any' && ends.some((each) => each?.outcome === 'done' || each?.outcome === 'answered')
  );
}

/** Whether this conversation is the thread of an open task. */
export function isTaskOpen({ thread }: TaskFold): boolean {
  return thread !== null && thread.open.length > 0;
}

/** The open tasks of an agent, or of all, oldest first. */
export function openTasks(fold: TaskFold, owner?: AgentId): Task[] {
  const tasks = tasksIn(fold, fold.open);
  return owner === undefined ? tasks : tasks.filter((task) => task.owner === owner);
}

/** Ended tasks that are held back from their owner because the group is not due. */
export function heldTasks(fold: TaskFold, owner: AgentId): Task[] {
  const ids = [...fold.waiting].flatMap((group) => fold.groups.get(group)?.tasks ?? []);
  return tasksIn(fold, ids).filter(
    (task) => task.owner === owner && task.end !== null && !isDue(fold, task.end.seq),
  );
}

function tasksIn({ tasks }: TaskFold, ids: Iterable<string>): Task[] {
  return [...ids].flatMap((id) => tasks.get(id) ?? []);
}

/** A copy for looking ahead; the original does not change. */
export function forkTaskFold(fold: TaskFold): TaskFold {
  return {
    ...fold,
    ...forkMembership(fold),
    tasks: new Map(fold.tasks),
    groups: new Map(fold.groups),
    open: new Set(fold.open),
    waiting: new Set(fold.waiting),
    ended: new Map(fold.ended),
    todos: new Map(fold.todos),
    directives: new Map(fold.directives),
    runs: structuredClone(fold.runs),
  };
}

/** The facts that decide which agents hear a new message. A fold of the log, the same in every process. */
export interface Participants {
  tasks: TaskFold;
  /** Seq of the last new message of a person to one agent alone. */
  asked: Map<AgentId, number>;
  /** Seq of the last notice that an agent has failed. */
  failedAt: Map<AgentId, number>;
  /** The agent that the conversation was handed over to last. */
  handedTo: AgentId | null;
}

export function newParticipants(): Participants {
  return { tasks: newTaskFold(), asked: new Map(), failedAt: new Map(), handedTo: null };
}

/** An event that was folded before changes nothing. */
export function foldParticipants(participants: Participants, event: Event): void {
  const { tasks, asked, failedAt } = participants;
  if (event.seq <= tasks.upTo) return;
  foldTask(tasks, event);
  if (event.kind === 'message') {
    const [only, ...others] = event.to;
    const isNew = event.author.kind === 'user' && event.replyTo === undefined;
    if (isNew && only && others.length === 0) asked.set(only, event.seq);
  } else if (event.kind === 'handoff') {
    if (hasAuthority(event)) participants.handedTo = event.to[0] ?? null;
  } else if (event.kind === 'error') {
    const failed = availabilityNoteOf(event);
    if (failed) failedAt.set(failed.agent, event.seq);
  }
}

/** Whether an agent hears a message that does not name it. */
export function isHere({ tasks }: Pick<Participants, 'tasks'>, agent: AgentId): boolean {
  return !tasks.away.has(agent) && !isRetired(tasks, agent);
}
