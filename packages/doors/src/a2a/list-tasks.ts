import { a2aError, type A2aTask, type ListRequest, type TaskState, taskId } from './protocol.ts';
import {
  type Desk,
  findTask,
  readTask,
  showTask,
  isTerminal,
  TaskProgress,
  absentWorkers,
  isTaskOf,
  readThreads,
} from './task.ts';
import { ConversationId, TroupeError, storedEvents } from '../troupe.ts';

/** Without a context, the tasks of this many of the newest conversations are listed. */
const MOST_CONVERSATIONS = 100;

interface TaskPage {
  tasks: A2aTask[];
  nextPageToken: string;
  pageSize: number;
  totalSize: number;
}

/** The tasks of an agent, in the order of their last change of state, newest first. Throws INVALID_PARAMS for a token of no page. */
export async function listTasks(desk: Desk, request: ListRequest): Promise<TaskPage> {
  const { contextId, status, pageSize, pageToken, historyLength, includeArtifacts = false } = request;
  const since = request.statusTimestampAfter === undefined ? 0 : Date.parse(request.statusTimestampAfter);
  const isAny = status === undefined || status === 'TASK_STATE_UNSPECIFIED';
  const found: FoundTask[] = [];
  for (const conversation of await contextsOf(desk, contextId))
    for (const task of await findTasks(desk, conversation))
      if ((isAny || task.state === status) && task.at >= since) found.push(task);
  found.sort(newestFirst);
  const from = pageToken === '' ? 0 : placeOf(found, pageToken);
  const page = found.slice(from, from + pageSize);
  const last = page.at(-1);
  const tasks: A2aTask[] = [];
  for (const { id } of page) {
    const view = await readTask(desk, await findTask(desk, id));
    tasks.push(await showTask(desk.troupe, view, { historyLength, hasArtifacts: includeArtifacts }));
  }
  const isLast = !last || from + pageSize >= found.length;
  return { tasks, nextPageToken: isLast ? '' : tokenOf(last), pageSize, totalSize: found.length };
}

async function contextsOf({ troupe }: Desk, contextId: string | undefined): Promise<string[]> {
  if (contextId) return [contextId];
  const { conversations } = await troupe.listConversations({ limit: MOST_CONVERSATIONS });
  return conversations.map(({ id }) => id);
}

function newestFirst(one: FoundTask, other: FoundTask): number {
  return other.at - one.at || (one.id < other.id ? 1 : -1);
}

/** Names the last task of a page, so that newer tasks do not shift the next page. */
function tokenOf({ id, at }: FoundTask): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

function placeOf(found: readonly FoundTask[], token: string): number {
  const [, time, last] = /^(\d{1,16}) (\S{1,200})$/.exec(Buffer.from(token, 'base64url').toString()) ?? [];
  if (time === undefined || last === undefined)
    throw a2aError('INVALID_PARAMS', 'pageToken: it names no page');
  const index = found.findIndex(({ id, at }) => at < Number(time) || (at === Number(time) && id < last));
  return index < 0 ? found.length : index;
}

/** A task without its texts. */
interface FoundTask {
  id: string;
  seq: number;
  state: TaskState;
  /** Time of the last change of the state, ms since the epoch. */
  at: number;
}

interface ReadTask {
  seq: number;
  progress: TaskProgress;
}

/** Number of events after which the ended tasks are stored again. */
const STORED_EVENTS = 64;

/**
 * The tasks of an agent in a conversation, oldest first.
 *  L1  Ended tasks are stored, with the place in the log up to which none is open. The log is read from there.
 */
async function findTasks({ troupe, agent }: Desk, conversation: string): Promise<FoundTask[]> {
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
