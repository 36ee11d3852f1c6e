import { TroupeError } from '../../errors.ts';
import type { ActorRecord, AgentId, ConversationId } from '../../events/index.ts';
import { isDue, type TaskBook } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { LogFolds } from '../log/log-folds.ts';
import { listTasks, type ReadTasks, type TaskInfo } from '../tasks/read-tasks.ts';

/** A task on which no agent works: it waits for a person, or for an agent that takes no turns. */
export interface Wait {
  /** Conversation of the task: the one asked about, or a thread of it. */
  conversation: ConversationId;
  task: TaskInfo;
}

/** What there is to do in a conversation and in the threads of its open tasks. */
export interface Work {
  /** Whether an agent has something to do there now. */
  isUnderWay: boolean;
  /** The innermost open tasks on which nobody works. */
  waits: Wait[];
}

export interface WorkParts {
  deps: Pick<EngineDeps, 'agents' | 'store' | 'clock'>;
  taskFolds: LogFolds<ReadTasks>;
}

/** Deepest nesting that is followed: a troupe's own limit may be raised, and a log may contain anything. */
const MAX_DEPTH = 16;

/**
 * `after`: only tasks that were opened in the conversation since this event count as waits. Reads the records of the actors, not
 * their machines, so it holds for turns of every process.
 */
export async function workIn(
  parts: WorkParts,
  root: ConversationKey,
  { after = 0 }: { after?: number } = {},
): Promise<Work> {
  const { taskFolds } = parts;
  const seen = new Set<ConversationId>();

  async function look(log: ConversationKey, depth: number): Promise<Work> {
    seen.add(log.conversation);
    const { book } = await taskFolds.of(log);
    const found: Work = { isUnderWay: await isAnyoneAtWork(parts, log, book), waits: [] };
    for (const task of (await listTasks(taskFolds, log, { open: true })).tasks) {
      if (depth === 0 && task.openedAt.seq <= after) continue;
      const { thread } = task;
      const isBelow = thread !== undefined && !seen.has(thread) && depth < MAX_DEPTH;
      const below = isBelow ? await look({ ...log, conversation: thread }, depth + 1) : null;
      found.isUnderWay ||= below?.isUnderWay === true;
      if (below && below.waits.length > 0) found.waits.push(...below.waits);
      else if (below?.isUnderWay !== true) found.waits.push({ conversation: log.conversation, task });
    }
    return found;
  }

  return look(root, 0);
}

async function isAnyoneAtWork({ deps }: WorkParts, log: ConversationKey, book: TaskBook): Promise<boolean> {
  const { agents, store, clock } = deps;
  const records = new Map<AgentId, ActorRecord>();
  const unreadable = new Set<AgentId>();
  for (const each of await store.listActors(log)) {
    if ('address' in each) unreadable.add(each.address.agent);
    else records.set(each.agent, each);
  }
  const head = await store.head(log);
  for (const agent of agents.keys()) {
    const record = records.get(agent);
    if (unreadable.has(agent) || (record && record.parked !== null)) continue;
    if (record && isBegun(record, clock.now())) return true;
    const unread = await store.addressed({ ...log, agent }, { after: record?.processed ?? 0, upTo: head });
    // The end of a task waits for the others of its group.
    if (unread.some((seq) => !book.ended.has(seq) || isDue(book, seq))) return true;
  }
  return false;
}

/** A turn, something to send, or a timer that has ended. */
function isBegun({ turn, outbox, posts, timers }: ActorRecord, now: number): boolean {
  return turn !== null || outbox.length + posts.length > 0 || timers.some(({ at }) => at <= now);
}

/** Pause between two looks at a conversation, ms. */
const PAUSE_MS = 10;

/** Resolves when nobody works in a conversation and its threads. Throws `shutting_down` when the troupe is closed meanwhile. */
export async function waitUntilRest(
  parts: WorkParts,
  log: ConversationKey,
  closed: AbortSignal,
): Promise<void> {
  while ((await workIn(parts, log)).isUnderWay) {
    if (closed.aborted) throw new TroupeError('shutting_down', 'the troupe is being closed');
    await parts.deps.clock.sleep(PAUSE_MS);
  }
}
