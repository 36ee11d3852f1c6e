import { createHash } from 'node:crypto';
import { a2aError } from '../../doors/a2a/problem.ts';
import { type Desk, findTask } from '../../doors/a2a/read-task.ts';
import type { PushConfig, PushRequest } from '../../doors/a2a/requests.ts';
import { taskId } from '../../doors/a2a/task-id.ts';
import type { Event } from '../../events/index.ts';
import type { PushedTask } from '../../integrations/task-push.ts';

type Given = Omit<PushConfig, 'taskId'>;

/** Throws what `addPush` would throw, before a task is begun for it. */
export async function checkPush({ troupe }: Pick<Desk, 'troupe'>, given: Given): Promise<void> {
  await troupe.taskPushes.check(receiverOf(given));
}

/** Stores where the states of a task are sent. The same address without an id is one, however often it is given. */
export async function addPush({ troupe, agent }: Desk, sent: Event, given: Given): Promise<object> {
  const receiver = receiverOf(given);
  const id = given.id || createHash('sha256').update(receiver.url).digest('hex').slice(0, 24);
  await troupe.taskPushes.add({ id, agent, ...markOf(sent), ...receiver });
  return { id, taskId: taskId(sent), ...receiver };
}

export async function listPushes(desk: Desk, task: string): Promise<object[]> {
  const sent = await findTask(desk, task);
  const pushes = await desk.troupe.taskPushes.list(markOf(sent));
  // Their secrets are for the receiver, and are not shown to others who may read the task.
  return pushes.map(({ id, url, authentication }) => ({
    id,
    taskId: task,
    url,
    ...(authentication && { authentication: { scheme: authentication.scheme } }),
  }));
}

export async function readPush(desk: Desk, { taskId: task, id }: PushRequest): Promise<object> {
  const pushes = await listPushes(desk, task);
  const push = pushes.find((each) => 'id' in each && each.id === id);
  if (!push) throw unknownPush(id);
  return push;
}

export async function removePush(desk: Desk, { taskId: task, id }: PushRequest): Promise<void> {
  const sent = await findTask(desk, task);
  if (!(await desk.troupe.taskPushes.remove(markOf(sent), id))) throw unknownPush(id);
}

function unknownPush(id: string): Error {
  return a2aError('TASK_NOT_FOUND', `the task has no notification "${id.slice(0, 128).toWellFormed()}"`);
}

function markOf({ conversation, seq, id, at }: Event): PushedTask {
  return { conversation, seq, event: id, at };
}

/** Clients send empty texts for none. */
function receiverOf({ url, token, authentication }: Given) {
  const { scheme, credentials } = authentication ?? {};
  return {
    url,
    ...(token && { token }),
    ...(scheme && { authentication: { scheme, ...(credentials && { credentials }) } }),
  };
}
