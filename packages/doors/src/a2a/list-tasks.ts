import { a2aError } from './problem.ts';
import type { A2aTask } from './protocol.ts';
import type { ListRequest } from './requests.ts';
import { findTasks, type FoundTask } from './find-tasks.ts';
import { type Desk, findTask, readTask } from './read-task.ts';
import { showTask } from './show-task.ts';

/** Without a context, tasks of the newest conversations are listed. */
const MOST_CONVERSATIONS = 100;

interface TaskPage {
  tasks: A2aTask[];
  nextPageToken: string;
  pageSize: number;
  totalSize: number;
}

/** The tasks of an agent, those whose state changed last first. Throws INVALID_PARAMS for a token of no page. */
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

/** Names the last task of a page, so that tasks which come meanwhile move nothing. */
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
