import { storedEvents } from '../../asking/follow.ts';
import { a2aError } from '../../doors/a2a/problem.ts';
import type { A2aTask } from '../../doors/a2a/protocol.ts';
import type { ListRequest } from '../../doors/a2a/requests.ts';
import { taskId } from '../../doors/a2a/task-id.ts';
import { isTerminal, TaskProgress } from '../../doors/a2a/task-progress.ts';
import { ConversationId, type Event } from '../../events/index.ts';
import { type Desk, isTaskOf, readTask, readThreads } from './read-task.ts';
import { showTask } from './show-task.ts';

/** Without a context, tasks of the newest conversations are listed. */
const MOST_CONVERSATIONS = 100;

interface Listed {
  id: string;
  sent: Event;
  progress: TaskProgress;
}

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
  const found: Listed[] = [];
  for (const conversation of await contextsOf(desk, contextId))
    for (const listed of await tasksIn(desk, conversation))
      if ((isAny || listed.progress.state === status) && listed.progress.at >= since) found.push(listed);
  found.sort(newestFirst);
  const from = pageToken === '' ? 0 : placeOf(found, pageToken);
  const page = found.slice(from, from + pageSize);
  const last = page.at(-1);
  const tasks: A2aTask[] = [];
  for (const { sent } of page) {
    const view = await readTask(desk, sent);
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

async function tasksIn({ troupe, agent }: Desk, conversation: string): Promise<Listed[]> {
  const all: Listed[] = [];
  let open: Listed[] = [];
  for await (const event of storedEvents(troupe, ConversationId.parse(conversation), 0)) {
    for (const { progress } of open) progress.note(event);
    open = open.filter(({ progress }) => !isTerminal(progress.state));
    if (!isTaskOf(event, agent)) continue;
    const listed = { id: taskId(event), sent: event, progress: new TaskProgress(event) };
    all.push(listed);
    open.push(listed);
  }
  for (const { progress } of open) await readThreads(troupe, progress);
  return all;
}

function newestFirst(one: Listed, other: Listed): number {
  return other.progress.at - one.progress.at || (one.id < other.id ? 1 : -1);
}

/** Names the last task of a page, so that tasks which come meanwhile move nothing. */
function tokenOf({ id, progress }: Listed): string {
  return Buffer.from(`${progress.at} ${id}`).toString('base64url');
}

function placeOf(found: readonly Listed[], token: string): number {
  const [, at, id] = /^(\d{1,16}) (\S{1,200})$/.exec(Buffer.from(token, 'base64url').toString()) ?? [];
  if (at === undefined || id === undefined) throw a2aError('INVALID_PARAMS', 'pageToken: it names no page');
  const index = found.findIndex(({ id: each, progress }) => {
    return progress.at < Number(at) || (progress.at === Number(at) && each < id);
  });
  return index < 0 ? found.length : index;
}
