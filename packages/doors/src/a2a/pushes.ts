import { createHash } from 'node:crypto';
import { a2aError } from './problem.ts';
import { findTask } from './read-task.ts';
import type { PushConfig, PushRequest } from './requests.ts';
import { taskId } from './task-id.ts';
import type { Caller } from '../http.ts';
import type { Event } from '../troupe.ts';
import type { PushedTask, TaskPushRepository } from './task-push.ts';
import type { TaskPushes } from './task-pushes.ts';

type Given = Omit<PushConfig, 'taskId'>;

/** Opened where it is needed: most requests have no notifications. */
export type Repositories = Pick<TaskPushes, 'repositoryOf'>;

/** Who asks an agent. What a caller has set is shown to no other. */
interface Asker extends Pick<Caller, 'troupe' | 'principal'> {
  agent: string;
  pushes: Repositories;
}

/** Throws what `addPush` would throw, before a task is begun for it. */
export async function checkPush(
  { pushes, troupe, principal }: Omit<Asker, 'agent'>,
  given: Given,
): Promise<void> {
  await pushes.repositoryOf(troupe.tenant).check({ owner: principal.id, ...receiverOf(given) });
}

/** Stores where the states of a task are sent. The same address without an id is one, however often it is given. */
export async function addPush(asker: Asker, sent: Event, given: Given): Promise<object> {
  const receiver = receiverOf(given);
  const id = given.id || createHash('sha256').update(receiver.url).digest('hex').slice(0, 24);
  const { agent } = asker;
  await repositoryOf(asker).add({ id, agent, ...markOf(asker, sent), ...receiver });
  return { id, taskId: taskId(sent), ...receiver };
}

export async function listPushes(asker: Asker, task: string): Promise<object[]> {
  const sent = await findTask(asker, task);
  const pushes = await repositoryOf(asker).list(markOf(asker, sent));
  // Their secrets are for the receiver, and are never shown again.
  return pushes.map(({ id, url, authentication }) => ({
    id,
    taskId: task,
    url,
    ...(authentication && { authentication: { scheme: authentication.scheme } }),
  }));
}

export async function readPush(asker: Asker, { taskId: task, id }: PushRequest): Promise<object> {
  const pushes = await listPushes(asker, task);
  const push = pushes.find((each) => 'id' in each && each.id === id);
  if (!push)
    throw a2aError('TASK_NOT_FOUND', `the task has no notification "${id.slice(0, 128).toWellFormed()}"`);
  return push;
}

/** The protocol has it idempotent: what is gone already may be deleted. */
export async function removePush(asker: Asker, { taskId: task, id }: PushRequest): Promise<void> {
  const sent = await findTask(asker, task);
  await repositoryOf(asker).remove(markOf(asker, sent), id);
}

function repositoryOf({ pushes, troupe }: Asker): TaskPushRepository {
  return pushes.repositoryOf(troupe.tenant);
}

function markOf({ principal }: Asker, { conversation, seq, id, at }: Event): PushedTask {
  return { owner: principal.id, conversation, seq, event: id, at };
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
