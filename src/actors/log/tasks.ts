import {
  type AgentId,
  attachmentName,
  ConversationId,
  type Event,
  type EventId,
  isAbout,
  type Join,
  type Author,
  MAX_TASK_EXCERPT,
  type OutgoingEvent,
  runtimeId,
  type TenantId,
  type TurnId,
} from '../../events/index.ts';
import { threadId } from '../../base/thread-id.ts';
import type { TaskEnd } from '../../machines/task-events.ts';
import {
  foldTask,
  isTaskOpen,
  newTaskFold,
  openTasks,
  type Task,
  type TaskFold,
} from '../../machines/task-fold.ts';
import type { ConversationKey } from '../../store/store.ts';
import {
  type Checkpoints,
  NO_CHECKPOINTS,
  type PageSource,
  readPages,
  createLogFolds,
  type LogFolds,
} from './read-log.ts';
import { capped, hashText } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { ConversationLog } from './conversation-log.ts';

/** The tasks of a log, the events that opened them, and the addressed agents. */
export interface ReadTasks {
  fold: TaskFold;
  /** Ids of the opening events, by task. */
  openedBy: Map<string, EventId>;
  /** Seq of the last event to each agent. */
  addressed: Map<AgentId, number>;
}

export async function readTasks(
  store: PageSource,
  log: ConversationKey,
  checkpoints: Checkpoints = NO_CHECKPOINTS,
): Promise<ReadTasks> {
  const read = (await restored(checkpoints, log))?.state ?? newReadTasks();
  for await (const events of readPages(store, log, { after: read.fold.upTo }))
    for (const event of events) foldReadTasks(read, event);
  return read;
}

const SUBJECT = 'tasks';

async function restored(checkpoints: Checkpoints, log: ConversationKey) {
  const found = await checkpoints.load(log, SUBJECT);
  return found && { state: found.parts[0] as ReadTasks, seq: found.seq };
}

export function newReadTasks(): ReadTasks {
  return { fold: newTaskFold(), openedBy: new Map(), addressed: new Map() };
}

export function foldReadTasks({ fold, openedBy, addressed }: ReadTasks, event: Event): void {
  foldTask(fold, event);
  for (const agent of event.to) addressed.set(agent, event.seq);
  const task = openingOf(event);
  if (task !== null && fold.tasks.get(task)?.seq === event.seq) openedBy.set(task, event.id);
}

const KEPT = 256;

export function createTaskFolds(
  source: PageSource,
  checkpoints: Checkpoints = NO_CHECKPOINTS,
): LogFolds<ReadTasks> {
  return createLogFolds(source, {
    begin: newReadTasks,
    fold: foldReadTasks,
    kept: KEPT,
    restore: (log) => restored(checkpoints, log),
    store(log, state, { seq, stored }) {
      // A fold of many tasks is stored less often, because it is large.
      if (seq - stored < Math.max(checkpoints.least, state.fold.tasks.size)) return stored;
      const content = structuredClone(state);
      void checkpoints
        .mark(log, seq)
        .then((place) => place && checkpoints.save(log, SUBJECT, place, [content]));
      return seq;
    },
  });
}

function openingOf(event: Event): string | null {
  if (!isAbout(event, 'taskOpening')) return null;
  switch (event.kind) {
    case 'delegation.opened':
      return event.body.delegation;
    case 'question':
      return event.body.question;
    case 'approval.requested':
      return event.body.request;
  }
}

/** A task as shown to people. Which optional fields it has depends on its kind. */
export interface TaskInfo {
  /** Its id. */
  id: string;
  /** Its kind: delegation, question or approval. */
  kind: Task['kind'];
  /** Id of the agent that waits for it. */
  owner: AgentId;
  /** Delegations only: id of the assignee. */
  assignee?: AgentId;
  /** Delegations only: the conversation of the assignee. */
  thread?: ConversationId;
  /** Text of a delegation or a question. */
  text?: string;
  /** Delegations only: names or media types of the attachments for the assignee. Absent: none. */
  attachments?: string[];
  /** Approvals only: the call as the model wrote it. */
  tool?: string;
  /** Approvals only: the arguments as the model wrote them. */
  args?: string;
  /** Approvals only: the hash that an approval must name. */
  argsHash?: string;
  /** Ids of the people who may answer. Empty: everybody. */
  by?: string[];
  /** Questions and approvals, if the list is for one person (`as`): whether this person may answer or decide it now. */
  decidable?: boolean;
  /** Questions only: answers to choose from. */
  choices?: string[];
  /** When it expires, ms since the epoch; null: never. */
  deadline: number | null;
  /** The event that opened it. */
  openedAt: { event: EventId; seq: number; at: number };
  /** How it ended; null while it is open. */
  end: TaskEnd | null;
  /** Key of its group. Tasks of a group wake their owner together, as `join` says. */
  group: string;
  /** After which results of the group the waiting agent is woken. */
  join: Join;
}

/** The last task of which a conversation is the thread. */
export interface ThreadInfo {
  /** Id of the task. */
  task: string;
  /** Id of the agent that gave it. */
  delegator: AgentId;
  /** Id of the agent that does it. */
  assignee: AgentId;
  /** Id of the conversation in which the delegator waits. */
  home: ConversationId;
  /** Text of the task. */
  text: string;
  /** When it expires, ms since the epoch. Null: never. */
  deadline: number | null;
  /** Whether it is still open. */
  isOpen: boolean;
}

/** Tasks of a conversation. */
export interface TaskList {
  /** Oldest first. */
  tasks: TaskInfo[];
  /** The task of which this conversation is the thread; null if it is not a thread. */
  thread: ThreadInfo | null;
}

export async function listTasks(
  folds: LogFolds<ReadTasks>,
  log: ConversationKey,
  options: TaskFilter = {},
): Promise<TaskList> {
  const read = await folds.of(log);
  const { fold } = read;
  const { thread } = fold;
  const own = thread && (thread.open.at(-1) ?? thread.opened);
  return {
    tasks: tasksIn(read, options),
    thread: own && {
      task: own.delegation,
      delegator: own.delegator,
      assignee: own.assignee,
      home: own.home,
      text: own.task,
      deadline: own.deadline ?? null,
      isOpen: isTaskOpen(fold),
    },
  };
}

interface TaskFilter {
  /** Leaves out the tasks that have ended. Default: all tasks. */
  open?: boolean | undefined;
  /** Computes `decidable`. Default: it is absent. */
  decidable?: ((task: Exclude<Task, { kind: 'delegation' }>, isArchived: boolean) => boolean) | undefined;
}

/** Oldest first. */
export function tasksIn(
  { fold, openedBy }: ReadTasks,
  { open = false, decidable }: TaskFilter = {},
): TaskInfo[] {
  const tasks = open ? openTasks(fold) : [...fold.tasks.values()];
  return tasks.map((task): TaskInfo => {
    const { id, kind, owner, group, seq, at, end } = task;
    const { deadline = null } = task.body;
    const join = fold.groups.get(group)?.join ?? 'all';
    const openedAt = { event: openedBy.get(id)!, seq, at };
    const may =
      decidable && task.kind !== 'delegation'
        ? { decidable: decidable(task, fold.directions.archived) }
        : undefined;
    return { id, kind, owner, ...detailsOf(task), ...may, deadline, openedAt, end, group, join };
  });
}

function detailsOf(task: Task): Partial<TaskInfo> {
  switch (task.kind) {
    case 'delegation': {
      const { assignee, thread, task: text, attachments } = task.body;
      return { assignee, thread, text, ...(attachments && { attachments: attachments.map(attachmentName) }) };
    }
    case 'question': {
      const { text, by, choices } = task.body;
      return { text, by, ...(choices && { choices }) };
    }
    case 'approval': {
      const { tool, args, argsHash, by } = task.body;
      return { tool, args, argsHash, by };
    }
  }
}

/** Id of the end of a task. It is fixed, so a task has one end, that of the first writer. */
export function endId(task: string): EventId {
  return runtimeId(task, 'end');
}

export function openedId(delegation: string): EventId {
  return runtimeId(delegation, 'opened');
}

/** The beginning of a task on one line. Its result shows it, because the owner's prompt may no longer contain the task. */
export function taskExcerpt(task: string): string {
  const line = task
    .slice(0, 4 * MAX_TASK_EXCERPT)
    .replace(/\s+/g, ' ')
    .trim();
  return capped(line, MAX_TASK_EXCERPT);
}

/** The events that cancel a task or end it at its deadline: one for its owner, and one that stops the assignee. */
export function cancellationOf(
  { conversation }: Pick<ConversationKey, 'conversation'>,
  task: Task,
  by: Author,
  why: string,
): OutgoingEvent[] {
  const id = endId(task.id);
  const to = [task.owner];
  switch (task.kind) {
    case 'delegation': {
      const { thread, assignee, task: words } = task.body;
      const body = {
        delegation: task.id,
        outcome: 'cancelled' as const,
        result: why,
        task: taskExcerpt(words),
      };
      const kind = 'delegation.ended' as const;
      return [
        { conversation, draft: { id, author: by, to, kind, body } },
        {
          conversation: thread,
          draft: { id: runtimeId(task.id, 'cancel'), author: by, to: [assignee], kind, body },
        },
      ];
    }
    case 'question': {
      const body = { question: task.id, outcome: endedBy(by), content: why };
      return [{ conversation, draft: { id, author: by, to, kind: 'question.answered', body } }];
    }
    case 'approval': {
      const body = { request: task.id, outcome: endedBy(by), note: why };
      return [{ conversation, draft: { id, author: by, to, kind: 'approval.decided', body } }];
    }
  }
}

/** A task that is being opened, for its deadline timer. */
export function opening(opened: Pick<Task, 'kind' | 'body' | 'id'>, owner: AgentId): Task {
  return { ...opened, owner, group: opened.id, seq: 0, at: 0, end: null } as Task;
}

function endedBy(by: Author): 'expired' | 'cancelled' {
  return by.kind === 'system' ? 'expired' : 'cancelled';
}

const ID_DIGITS = 12;

/** The id of a task. It is the same in every attempt at a turn, so a repeated call opens the same task. */
export function taskIdOf(
  kind: 'd' | 'q' | 'a',
  turn: TurnId,
  { step, index }: { step: number; index: number },
): string {
  return `${kind}-${hashText(`${turn}/${step}.${index}`).slice(0, ID_DIGITS)}`;
}

/** Id of a task's thread, named after the root conversation at any depth. */
export function threadOf(root: ConversationId, task: string): ConversationId {
  return ConversationId.parse(threadId(root, task));
}

/**
 * Appends outgoing events to their logs, in order per log. Safe to repeat. If another event has the same id, that one counts,
 * because the task has ended already.
 */
export async function sendOutgoing(
  { log, metrics }: { log: Pick<ConversationLog, 'append'>; metrics: Pick<Metrics, 'count'> },
  tenant: TenantId,
  outgoing: readonly OutgoingEvent[],
): Promise<void> {
  await Promise.all([...Map.groupBy(outgoing, ({ conversation }) => conversation)].map(sendTo));

  async function sendTo([conversation, own]: [ConversationId, OutgoingEvent[]]): Promise<void> {
    for (const { draft } of own) {
      try {
        await log.append({ tenant, conversation }, [draft]);
      } catch (error) {
        if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
        metrics.count('posts_too_late', { kind: draft.kind });
      }
    }
  }
}
