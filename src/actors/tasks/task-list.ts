import type { AgentId, ConversationId, EventId, Join } from '../../events/index.ts';
import { isTaskOpen, type Task, type TaskEnd } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { LogFolds } from '../log/log-folds.ts';
import type { ReadTasks } from './read-tasks.ts';

/** What somebody waits for, as people are shown it. Which fields are there beyond the common ones, its kind says. */
export interface TaskInfo {
  id: string;
  kind: Task['kind'];
  /** The agent that waits. */
  owner: AgentId;
  /** Of a delegation: who works on it, and in which conversation. */
  assignee?: AgentId;
  thread?: ConversationId;
  /** Of a delegation its task, of a question what is asked. */
  text?: string;
  /** Of an approval: the call, as the model wrote it. */
  tool?: string;
  args?: string;
  argsHash?: string;
  /** Ids of the people who may end it with an answer; nobody named: all. */
  by?: string[];
  choices?: string[];
  /** Ms since the epoch. */
  deadline: number | null;
  openedAt: { event: EventId; seq: number; at: number };
  end: TaskEnd | null;
  /** Tasks of one group wake their owner together, as `join` says. */
  group: string;
  join: Join;
}

/** The task that a conversation is the thread of, the last one where there were several. */
export interface ThreadInfo {
  task: string;
  delegator: AgentId;
  assignee: AgentId;
  /** Where the delegator waits for it. */
  home: ConversationId;
  text: string;
  deadline: number | null;
  isOpen: boolean;
}

export interface TaskList {
  /** Oldest first. */
  tasks: TaskInfo[];
  thread: ThreadInfo | null;
}

export async function listTasks(
  folds: LogFolds<ReadTasks>,
  log: ConversationKey,
  { open = false }: { open?: boolean | undefined } = {},
): Promise<TaskList> {
  const { book, openedBy } = await folds.of(log);
  const tasks = [...book.tasks.values()].filter(({ end }) => !open || end === null);
  const { thread } = book;
  const own = thread && (thread.open.at(-1) ?? thread.opened);
  return {
    tasks: tasks.map((task): TaskInfo => {
      const { id, kind, owner, group, seq, at, end } = task;
      const { deadline = null } = task.body;
      const join = book.groups.get(group)?.join ?? 'all';
      const openedAt = { event: openedBy.get(id)!, seq, at };
      return { id, kind, owner, ...detailsOf(task), deadline, openedAt, end, group, join };
    }),
    thread: own && {
      task: own.delegation,
      delegator: own.delegator,
      assignee: own.assignee,
      home: own.home,
      text: own.task,
      deadline: own.deadline ?? null,
      isOpen: isTaskOpen(book),
    },
  };
}

function detailsOf(task: Task): Partial<TaskInfo> {
  switch (task.kind) {
    case 'delegation': {
      const { assignee, thread, task: text } = task.body;
      return { assignee, thread, text };
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
