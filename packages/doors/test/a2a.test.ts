import type { SendMessageRequest, Task } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { ListRequest } from '../src/a2a/protocol.ts';
import { listTasks } from '../src/a2a/list-tasks.ts';
import type { Troupe } from '../../../src/library/troupe.ts';
import { defineTool } from '../../../src/tools/tool.ts';
import { a2aClient, Kept, said, stateOf, textOf } from './a2a-client.ts';
import { openStage, type Stage } from './stage.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const pay = defineTool({
  name: 'pay',
  description: '',
  schema: z.object({ sum: z.number() }),
  needsApproval: true,
  run: ({ sum }) => `paid ${sum}`,
});
const HANDOFF = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };
const QUESTION = { calls: [{ name: 'ask', args: '{"question":"Which size?"}' }] };

let stage: Stage;
/** Ends the replies of @slow. */
let release = () => {};

beforeAll(async () => {
  stage = await openStage(['bo', 'desk', 'billing', 'payer', 'asker', 'slow', 'broken', 'json', 'idler'], {
    tools: [pay],
    agents: {
      desk: { name: 'Desk', tools: ['handoff'] },
      billing: { name: 'Billing', description: 'Refunds', capabilities: ['money'] },
      payer: { tools: ['pay'] },
      asker: { tools: ['ask'] },
      json: { reply: { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] } },
    },
    answers: {
      bo: ({ body }) => ({
        text: `I have read: ${JSON.stringify(body).includes('dot.png') ? 'a file' : 'words'}`,
      }),
      desk: (request) => ({ text: 'One moment.', ...(request && HANDOFF) }),
      billing: () => ({ text: 'It is refunded.' }),
      payer: ({ body }) =>
        JSON.stringify(body).includes('paid 3')
          ? { text: 'Done.' }
          : { calls: [{ name: 'pay', args: '{"sum":3}' }] },
      asker: ({ body }) => (JSON.stringify(body).includes('size L') ? { text: 'L it is.' } : QUESTION),
      slow: () => new Promise((resolve) => (release = () => resolve({ text: 'At last.' }))),
      broken: () => ({ raw: { status: 401, body: '{}' } }),
      json: () => ({ text: '{"colour":"blue"}' }),
    },
  });
});
afterAll(async () => stage[Symbol.asyncDispose]());

async function ask(client: Client, request: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(request);
  if (!('id' in result)) throw new Error('a message came, and no task');
  return result;
}

async function kept(events: ReturnType<Client['sendMessageStream']>): Promise<Kept> {
  const all = new Kept();
  for await (const event of events) all.take(event);
  return all;
}

test('the card of an agent says what it does, and how it is reached', async () => {
  const client = await a2aClient(stage.url, 'billing');
  const card = await client.getAgentCard();
  expect(card).toMatchObject({
    name: 'Billing',
    description: 'Refunds',
    capabilities: { streaming: true },
    skills: [{ id: 'billing', tags: ['peer', 'money'] }],
  });
  expect(card.supportedInterfaces[0]).toMatchObject({
    url: `${stage.url}/api/a2a/billing`,
    protocolBinding: 'JSONRPC',
    protocolVersion: '1.0',
  });
});

test('a message is a task, and a message in its context joins the conversation', async () => {
  const client = await a2aClient(stage.url, 'bo');
  const first = await ask(client, said('Hello.'));
  expect(stateOf(first)).toBe('TASK_STATE_COMPLETED');
  expect(first.artifacts.map(textOf)).toEqual(['I have read: words']);
  expect(first.artifacts[0]).toMatchObject({ name: 'bo', metadata: { author: { id: 'bo' } } });
  expect(first.history).toMatchObject([{ parts: [{ content: { value: 'Hello.' } }] }]);
  const second = await ask(client, said('And?', { contextId: first.contextId }));
  expect(second.contextId).toBe(first.contextId);
  expect(second.id).not.toBe(first.id);
  const { events } = await stage.troupe.events(first.contextId);
  expect(events.filter(({ kind }) => kind === 'message').map(({ author }) => author.id)).toEqual([
    'user',
    'bo',
    'user',
    'bo',
  ]);
  expect(events[0]).toMatchObject({ to: ['bo'], context: { channel: 'a2a' } });
});

test('a repeated message is the same task', async () => {
  const client = await a2aClient(stage.url, 'bo');
  const request = said('Once.', { messageId: 'once/1' });
  const [first, second] = [await ask(client, request), await ask(client, request)];
  expect(second.id).toBe(first.id);
  expect(second.artifacts).toEqual(first.artifacts);
});

test('a stream tells the task, the words of each agent, and the end', async () => {
  const client = await a2aClient(stage.url, 'desk');
  const { text, names, states } = await kept(client.sendMessageStream(said('Refund it.')));
  expect(text).toBe('One moment.|It is refunded.');
  expect([...names]).toEqual(['Desk', 'Billing']);
  expect(states).toEqual(['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
});

test('files come with a message, and with the task', async () => {
  const client = await a2aClient(stage.url, 'bo');
  const request = said('Look.');
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const file = { $case: 'raw' as const, value: png };
  request.message.parts.push({
    content: file,
    metadata: undefined,
    filename: 'dot.png',
    mediaType: 'image/png',
  } as never);
  const task = await ask(client, request);
  expect(task.artifacts.map(textOf)).toEqual(['I have read: a file']);
  expect(task.history[0]?.parts[1]).toMatchObject({ filename: 'dot.png', mediaType: 'image/png' });
  const { content } = task.history[0]!.parts[1]!;
  expect(content?.$case === 'raw' && Buffer.from(content.value).equals(png)).toBe(true);
});

test('a reply in JSON is data, too', async () => {
  const client = await a2aClient(stage.url, 'json');
  const task = await ask(client, said('Which?'));
  expect(task.artifacts.at(-1)?.parts[0]?.content).toEqual({ $case: 'data', value: { colour: 'blue' } });
});

test('a question of an agent requires input, and a further message to the task answers it', async () => {
  const client = await a2aClient(stage.url, 'asker');
  const asked = await ask(client, said('A shirt.'));
  expect(stateOf(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
  expect(asked.status?.message?.parts.map(({ content }) => content)).toMatchObject([
    { value: 'Which size?' },
    { value: { agent: 'asker', question: expect.stringMatching(/^q-/) } },
  ]);
  const about = { taskId: asked.id, contextId: asked.contextId };
  const { text, states } = await kept(client.sendMessageStream(said('size L', about)));
  expect(text).toBe('L it is.');
  expect(states.at(-1)).toBe('TASK_STATE_COMPLETED');
  const task = await client.getTask({ tenant: '', id: asked.id });
  expect(stateOf(task)).toBe('TASK_STATE_COMPLETED');
  expect(task.history.map((message) => textOf(message))).toEqual(['A shirt.', 'size L']);
  await expect(client.sendMessage(said('More', about))).rejects.toMatchObject({
    name: 'UnsupportedOperationError',
  });
});

test('a call that needs approval requires input, and only a decision is one', async () => {
  const client = await a2aClient(stage.url, 'payer');
  const asked = await ask(client, said('Pay.'));
  expect(stateOf(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
  expect(asked.status?.message?.parts[1]?.content).toMatchObject({
    value: { tool: 'pay', args: '{"sum":3}' },
  });
  const about = { taskId: asked.id };
  await expect(client.sendMessage(said('perhaps', about))).rejects.toMatchObject({
    name: 'RequestMalformedError',
  });
  const done = await ask(client, said('approve', about));
  expect(stateOf(done)).toBe('TASK_STATE_COMPLETED');
  expect(done.artifacts.map(textOf)).toEqual(['Done.']);
});

test('a task is cancelled, and then it is over', async () => {
  const client = await a2aClient(stage.url, 'slow');
  const begun = await ask(client, {
    ...said('Wait.'),
    configuration: {
      returnImmediately: true,
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
    },
  });
  expect(stateOf(begun)).toBe('TASK_STATE_WORKING');
  const following = kept(client.resubscribeTask({ tenant: '', id: begun.id }));
  const cancelled = await client.cancelTask({ tenant: '', id: begun.id, metadata: undefined });
  expect(stateOf(cancelled)).toBe('TASK_STATE_CANCELED');
  expect((await following).states.at(-1)).toBe('TASK_STATE_CANCELED');
  await expect(client.cancelTask({ tenant: '', id: begun.id, metadata: undefined })).rejects.toMatchObject({
    name: 'TaskNotCancelableError',
  });
  await expect(kept(client.resubscribeTask({ tenant: '', id: begun.id }))).rejects.toThrow();
  release();
});

test('a task of a paused agent is submitted, says why, and is followed until the agent has answered', async () => {
  const client = await a2aClient(stage.url, 'idler');
  const contextId = 'paused';
  await ask(client, said('Hello.', { contextId }));
  const by = { kind: 'user', id: 'op', name: 'Op' } as const;
  await stage.troupe.command({ command: 'pause', conversation: contextId, agent: 'idler' }, by);
  const following = new Kept();
  for await (const event of client.sendMessageStream(said('Go on.', { contextId }))) {
    following.take(event);
    if (event.payload?.$case !== 'statusUpdate' || following.states.at(-1) !== 'TASK_STATE_SUBMITTED')
      continue;
    const task = await client.getTask({ tenant: '', id: following.task!.id });
    expect(stateOf(task)).toBe('TASK_STATE_SUBMITTED');
    expect(textOf(task.status!.message!)).toMatch(/^@idler is paused: /);
    await stage.troupe.command({ command: 'resume', conversation: contextId, agent: 'idler' }, by);
  }
  expect(following.text).toBe('idler answers 2');
  expect(following.states).toEqual(
    ['WORKING', 'SUBMITTED', 'WORKING', 'COMPLETED'].map((state) => `TASK_STATE_${state}`),
  );
});

test('the HTTP+JSON binding does the same, and has the errors of the protocol', async () => {
  const client = await a2aClient(stage.url, 'bo', undefined, 'HTTP+JSON');
  const task = await ask(client, said('Hello.', { contextId: 'rest' }));
  expect(stateOf(task)).toBe('TASK_STATE_COMPLETED');
  expect(await client.getTask({ tenant: '', id: task.id })).toEqual(task);
  const query = { tenant: '', contextId: 'rest', status: 3, pageToken: '', statusTimestampAfter: undefined };
  const listed = await client.listTasks({ ...query, pageSize: 1, includeArtifacts: true });
  expect(listed).toMatchObject({ totalSize: 1, tasks: [{ id: task.id, artifacts: [{}] }] });
  const streamed = await kept(client.sendMessageStream(said('And?')));
  expect(streamed.text).toBe('I have read: words');
  expect(streamed.states.at(-1)).toBe('TASK_STATE_COMPLETED');
  const slow = await a2aClient(stage.url, 'slow', undefined, 'HTTP+JSON');
  const configuration = {
    returnImmediately: true,
    acceptedOutputModes: [],
    taskPushNotificationConfig: undefined,
  };
  const { id } = await ask(slow, { ...said('Wait.'), configuration });
  const following = kept(slow.resubscribeTask({ tenant: '', id }));
  const cancelled = await slow.cancelTask({ tenant: '', id, metadata: undefined });
  expect(stateOf(cancelled)).toBe('TASK_STATE_CANCELED');
  expect((await following).states.at(-1)).toBe('TASK_STATE_CANCELED');
  release();
  await expect(kept(slow.resubscribeTask({ tenant: '', id }))).rejects.toMatchObject({
    name: 'UnsupportedOperationError',
  });
  await expect(client.getTask({ tenant: '', id: 'rest~99' })).rejects.toMatchObject({
    name: 'TaskNotFoundError',
  });
  await expect(client.listTasks({ ...query, pageToken: 'x', pageSize: 1 })).rejects.toThrow(
    /it names no page/,
  );
  const bare = await fetch(`${stage.url}/api/a2a/bo/tasks`);
  expect([bare.status, await bare.json()]).toMatchObject([
    400,
    { error: { code: 400, status: 'FAILED_PRECONDITION', details: [{ reason: 'VERSION_NOT_SUPPORTED' }] } },
  ]);
});

test('an agent that fails fails the task, with the code', async () => {
  const client = await a2aClient(stage.url, 'broken');
  const task = await ask(client, said('Go.'));
  expect(stateOf(task)).toBe('TASK_STATE_FAILED');
  expect(task.status?.message?.metadata).toMatchObject({
    code: expect.any(String),
    author: { id: 'broken' },
  });
  expect(textOf(task.status!.message!)).toMatch(/^@broken: /);
});

test('tasks are listed by page, the newest first, with their states', async () => {
  const client = await a2aClient(stage.url, 'bo');
  const contextId = 'listed';
  const ids: string[] = [];
  for (const text of ['one', 'two', 'three']) ids.unshift((await ask(client, said(text, { contextId }))).id);
  const query = { tenant: '', contextId, status: 0, pageToken: '', statusTimestampAfter: undefined };
  const first = await client.listTasks({ ...query, pageSize: 2 });
  expect(first).toMatchObject({ totalSize: 3, pageSize: 2 });
  const second = await client.listTasks({ ...query, pageSize: 2, pageToken: first.nextPageToken });
  expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(ids);
  expect(second.nextPageToken).toBe('');
  expect(first.tasks[0]?.artifacts).toEqual([]);
  const none = await client.listTasks({ ...query, status: 2 });
  expect(none.tasks).toEqual([]);
  const all = await client.listTasks({ ...query, contextId: '', includeArtifacts: true, pageSize: 100 });
  expect(all.tasks.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
  expect(all.tasks.every(({ artifacts }) => artifacts.length > 0)).toBe(true);
});

test('a list reads no events again of tasks that have ended', async () => {
  const client = await a2aClient(stage.url, 'bo');
  const contextId = 'long';
  const author = { kind: 'user', id: 'u1', name: 'Uma' } as const;
  await ask(client, said('one', { contextId }));
  for (let number = 0; number < 70; number += 1)
    await stage.troupe.send(contextId, { author, to: [], content: `${number}` });
  const two = await ask(client, said('two', { contextId }));
  let rows = 0;
  const troupe: Troupe = {
    ...stage.troupe,
    async events(...given) {
      const page = await stage.troupe.events(...given);
      rows += page.events.length;
      return page;
    },
  };
  const list = async () => {
    rows = 0;
    const { tasks, totalSize } = await listTasks(
      { troupe, agent: 'bo' },
      ListRequest.parse({ contextId, pageSize: 1 }),
    );
    return { first: tasks[0]?.id, totalSize, rows };
  };
  expect(await list()).toMatchObject({
    first: two.id,
    totalSize: 2,
    rows: expect.toSatisfy((read: number) => read > 70),
  });
  await untilHolds(async () => expect(await stage.troupe.checkpoint(contextId, 'a2a:bo')).not.toBeNull());
  expect(await list()).toMatchObject({
    first: two.id,
    totalSize: 2,
    rows: expect.toSatisfy((read: number) => read < 20),
  });
});
