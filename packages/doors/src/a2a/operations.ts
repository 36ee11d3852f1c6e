import type { Context } from 'hono';
import type * as z from 'zod';
import { a2aError } from './problem.ts';
import type { A2aTask, StreamResponse, TaskState } from './protocol.ts';
import {
  fromProtoJson,
  ListRequest,
  NewPushRequest,
  PushListRequest,
  PushRequest,
  SendRequest,
  TaskRequest,
} from './requests.ts';
import { isAtRest, isTerminal } from './task-progress.ts';
import {
  authorOf,
  type Caller,
  checkScope,
  type DoorServer,
  type HeldPlace,
  parseInput,
  readAs,
  withPlace,
} from '../http.ts';
import type { Clock, Event } from '../troupe.ts';
import { beginTask } from './begin-task.ts';
import { cardOf } from './card.ts';
import { followTask } from './follow-task.ts';
import { listTasks } from './list-tasks.ts';
import { findTask, readTask } from './read-task.ts';
import { addPush, type Repositories, checkPush, listPushes, readPush, removePush } from './pushes.ts';
import { showTask } from './show-task.ts';

/** One request of a client, in either binding. */
export interface Call {
  context: Context;
  caller: Caller;
  /** Id of the agent. */
  agent: string;
  params: unknown;
  /** Receivers of what tasks do. */
  pushes: Repositories;
  server: DoorServer;
}

/** What an operation gives. `stream` owns its place, until its end. */
export type Reply =
  | { type: 'value'; value: object }
  | { type: 'stream'; place: HeldPlace; tell: (ends: AbortSignal) => AsyncGenerator<StreamResponse, void> };

type Operation = (call: Call) => Promise<Reply>;

/** The operations of the protocol, by their names in JSON-RPC. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  SendMessage: send,
  SendStreamingMessage: sendStreaming,
  GetTask: get,
  ListTasks: list,
  CancelTask: cancel,
  SubscribeToTask: subscribe,
  GetExtendedAgentCard: extendedCard,
  CreateTaskPushNotificationConfig: createPush,
  GetTaskPushNotificationConfig: getPush,
  ListTaskPushNotificationConfigs: listPush,
  DeleteTaskPushNotificationConfig: deletePush,
};

/** Throws the errors of the protocol, and of every route. */
export async function operate(name: string, call: Call): Promise<Reply> {
  const operation = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
  if (!operation)
    throw a2aError('METHOD_NOT_FOUND', `there is no method "${name.slice(0, 100).toWellFormed()}"`);
  return operation(call);
}

function input<T>(schema: z.ZodType<T>, { params }: Call): T {
  return parseInput(schema, fromProtoJson(params), 'params');
}

/** Begins the task of a message. Nothing is begun for a client that would wait for notifications in vain. */
async function beginSent({ caller, agent, pushes }: Call, request: SendRequest): Promise<Event> {
  const push = request.configuration?.taskPushNotificationConfig;
  if (!push) return beginTask(caller, agent, request.message);
  await checkPush({ ...caller, pushes }, push);
  const sent = await beginTask(caller, agent, request.message);
  await addPush({ ...caller, agent, pushes }, sent, push);
  return sent;
}

async function send(call: Call): Promise<Reply> {
  const { context, caller, server } = call;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const request = input(SendRequest, call);
  const { configuration } = request;
  const { clock, signal } = server;
  return withPlace({ caller, clock, signal }, async (place) => {
    const sent = await beginSent(call, request);
    const ends = AbortSignal.any([place.ends, context.req.raw.signal]);
    if (!configuration?.returnImmediately) await untilOver(caller, sent, { clock, signal: ends });
    place.end();
    const { historyLength } = configuration ?? {};
    return { type: 'value', value: { task: await shown(caller, sent, historyLength) } };
  });
}

async function untilOver(
  { troupe }: Caller,
  sent: Event,
  parts: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  try {
    // The log has all of it then.
    for await (const _ of followTask({ troupe }, sent, { ...parts, until: isAtRest }));
  } catch (error) {
    if (!parts.signal.aborted) throw error;
  }
}

async function shown({ troupe }: Caller, sent: Event, historyLength?: number): Promise<A2aTask> {
  return showTask(troupe, await readTask({ troupe }, sent), { historyLength });
}

async function sendStreaming(call: Call): Promise<Reply> {
  const { caller, server } = call;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const request = input(SendRequest, call);
  const { clock, signal } = server;
  return withPlace({ caller, clock, signal }, async (place) => {
    const sent = await beginSent(call, request);
    return streamOf(caller, { sent, place, clock, until: isAtRest }, request.configuration?.historyLength);
  });
}

interface StreamParts {
  sent: Event;
  place: HeldPlace;
  clock: Clock;
  until: (state: TaskState) => boolean;
}

function streamOf(
  { troupe }: Caller,
  { sent, place, clock, until }: StreamParts,
  historyLength?: number,
): Reply {
  async function* tell(ends: AbortSignal): AsyncGenerator<StreamResponse, void> {
    for await (const each of followTask({ troupe }, sent, { clock, signal: ends, until }))
      if (each.type === 'update') yield each.update;
      else yield { task: await showTask(troupe, each.view, { historyLength }) };
  }
  return { type: 'stream', place, tell };
}

async function subscribe(call: Call): Promise<Reply> {
  const { caller, agent, server } = call;
  const { troupe } = caller;
  checkScope(caller.principal, 'read');
  const { id } = input(TaskRequest, call);
  const { clock, signal } = server;
  return withPlace({ caller, clock, signal }, async (place) => {
    const sent = await findTask({ troupe, agent }, id);
    if ((await readTask({ troupe }, sent)).isOver)
      throw a2aError('UNSUPPORTED_OPERATION', 'the task has ended: get it instead');
    return streamOf(caller, { sent, place, clock, until: isTerminal });
  });
}

async function get(call: Call): Promise<Reply> {
  const { caller, agent } = call;
  const { id, historyLength } = input(TaskRequest, call);
  return reading(caller, async () => {
    const sent = await findTask({ troupe: caller.troupe, agent }, id);
    return shown(caller, sent, historyLength);
  });
}

async function list(call: Call): Promise<Reply> {
  const { caller, agent } = call;
  const request = input(ListRequest, call);
  return reading(caller, () => listTasks({ troupe: caller.troupe, agent }, request));
}

/** Everything that goes on in the context of the task ends. */
async function cancel(call: Call): Promise<Reply> {
  const { caller, agent } = call;
  const { troupe } = caller;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const { id } = input(TaskRequest, call);
  const sent = await findTask({ troupe, agent }, id);
  const { isOver } = await readTask({ troupe }, sent);
  if (isOver) throw a2aError('TASK_NOT_CANCELABLE', 'the task has ended');
  const { conversation } = sent;
  await troupe.command({ command: 'cancelTask', conversation, task: 'all' }, authorOf(caller));
  return { type: 'value', value: await shown(caller, sent) };
}

async function extendedCard({ context, caller, agent, server }: Call): Promise<Reply> {
  checkScope(caller.principal, 'read');
  return { type: 'value', value: cardOf({ context, caller, agent, server }, { isExtended: true }) };
}

async function createPush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  const { troupe } = caller;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const { taskId, ...push } = input(NewPushRequest, call);
  const sent = await findTask({ troupe, agent }, taskId);
  return { type: 'value', value: await addPush({ ...caller, agent, pushes }, sent, push) };
}

async function getPush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  const request = input(PushRequest, call);
  return reading(caller, () => readPush({ ...caller, agent, pushes }, request));
}

async function listPush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  const { taskId } = input(PushListRequest, call);
  return reading(caller, async () => ({
    configs: await listPushes({ ...caller, agent, pushes }, taskId),
    nextPageToken: '',
  }));
}

async function deletePush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  await removePush({ ...caller, agent, pushes }, input(PushRequest, call));
  return { type: 'value', value: {} };
}

async function reading(caller: Caller, work: () => Promise<object>): Promise<Reply> {
  checkScope(caller.principal, 'read');
  return { type: 'value', value: await readAs(caller, work) };
}
