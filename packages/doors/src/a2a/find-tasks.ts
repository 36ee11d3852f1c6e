import { ConversationId, TroupeError, storedEvents } from '../troupe.ts';
import type { TaskState } from './protocol.ts';
import { taskId } from './task-id.ts';
import { isTerminal, TaskProgress } from './task-progress.ts';
import { absentWorkers, type Desk, isTaskOf, readThreads } from './read-task.ts';

/** A task without its words. */
export interface FoundTask {
  id: string;
  /** Seq of its message. */
  seq: number;
  state: TaskState;
  /** Time of the last change of the state, ms since the epoch. */
  at: number;
}

interface ReadTask {
  seq: number;
  progress: TaskProgress;
}

/** Events after which the ended tasks are stored again. */
const STORED_EVENTS = 64;

/**
 * The tasks of an agent in a conversation, oldest first.
 *  L1  Those that have ended are stored with the place up to which none is open, and the log is read from there.
 */
export async function findTasks({ troupe, agent }: Desk, conversation: string): Promise<FoundTask[]> {
  const reader = `a2a:${agent}`;
  const stored = await storedTasks({ troupe, agent }, conversation, reader);
  const found: ReadTask[] = [];
  let open: ReadTask[] = [];
  let last = stored.seq;
  for await (const event of storedEvents(troupe, ConversationId.parse(conversation), stored.seq)) {
    last = event.seq;
    for (const { progress } of open) progress.note(event);
    open = open.filter(({ progress }) => !isTerminal(progress.state));
    if (!isTaskOf(event, agent)) continue;
    const read = { seq: event.seq, progress: new TaskProgress(event) };
    found.push(read);
    open.push(read);
  }
  const place = open[0] ? open[0].seq - 1 : last;
  const tasks = [...stored.tasks];
  for (const { seq, progress } of found) {
    if (!isTerminal(progress.state)) await readThreads(troupe, progress);
    tasks.push({
      id: taskId({ conversation, seq }),
      seq,
      state: await stateOf(troupe, progress),
      at: progress.at,
    });
  }
  if (place - stored.seq >= STORED_EVENTS) {
    const content = tasks.filter(({ seq }) => seq <= place);
    await troupe.saveCheckpoint(conversation, reader, { seq: place, content });
  }
  return tasks;
}

async function stateOf(troupe: Desk['troupe'], progress: TaskProgress): Promise<TaskState> {
  const isHeld = !progress.isBegun && (await absentWorkers(troupe, progress)).length > 0;
  return isHeld ? 'TASK_STATE_SUBMITTED' : progress.state;
}

async function storedTasks(
  { troupe }: Desk,
  conversation: string,
  reader: string,
): Promise<{ seq: number; tasks: readonly FoundTask[] }> {
  try {
    const found = await troupe.checkpoint(conversation, reader);
    return found ? { seq: found.seq, tasks: found.content as FoundTask[] } : { seq: 0, tasks: [] };
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { seq: 0, tasks: [] };
    throw error;
  }
}
