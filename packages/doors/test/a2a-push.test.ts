import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Task, TaskPushNotificationConfig } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Receiver, startReceiver } from '../../../test/integrations/receiver.ts';
import { a2aClient, said, stateOf } from './a2a-client.ts';
import { openStage, type Stage } from './stage.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const data = mkdtempSync(path.join(tmpdir(), 'troupe-push-'));
let receiver: Receiver;
let stage: Stage;
let key = '';

async function open(): Promise<Stage> {
  return openStage(['asker', 'cy'], {
    data,
    isKeyed: true,
    agents: { asker: { tools: ['ask'] } },
    answers: {
      asker: ({ body }) =>
        JSON.stringify(body).includes('size L')
          ? { text: 'L it is.' }
          : { calls: [{ name: 'ask', args: '{"question":"Which size?"}' }] },
    },
    definition: { webhooks: { allow: ['*', receiver.host] } },
  });
}

beforeAll(async () => {
  receiver = await startReceiver();
  stage = await open();
  key = (await stage.troupe.keys.create({ name: 'x', scopes: ['read', 'write'] })).secret;
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
  rmSync(data, { recursive: true });
});

const SECRETS = { token: 'for you', authentication: { scheme: 'Bearer', credentials: 'abc' } };

function config(taskId: string, more: Partial<TaskPushNotificationConfig> = {}): TaskPushNotificationConfig {
  return { tenant: '', id: '', taskId, url: receiver.url, token: '', authentication: undefined, ...more };
}

async function begin(client: Client, push?: TaskPushNotificationConfig, contextId = ''): Promise<Task> {
  const request = said('A shirt.', { contextId });
  const configuration = {
    acceptedOutputModes: [],
    returnImmediately: false,
    taskPushNotificationConfig: push,
  };
  return (await client.sendMessage({ ...request, configuration })) as Task;
}

/** The states that the receiver at this path was told. */
function toldAt(where: string): string[] {
  return receiver.received
    .filter((each) => each.path === where)
    .map(({ text }) => (JSON.parse(text) as { statusUpdate: Told }).statusUpdate.status.state);
}
interface Told {
  status: { state: string };
}

test('the states of a task are sent with the token and the authentication, also after a restart, and end with the task', async () => {
  receiver.answer = ({ path: at }, count) => ({ status: at === '/kept' && count === 1 ? 500 : 204 });
  const first = await a2aClient(stage.url, 'asker', key);
  expect((await first.getAgentCard()).capabilities).toMatchObject({ pushNotifications: true });
  const { id, contextId } = await begin(first);
  const url = receiver.url.replace('/hook', '/kept');
  const made = await first.createTaskPushNotificationConfig(config(id, { id: 'p1', url, ...SECRETS }));
  expect(made).toMatchObject({ id: 'p1', taskId: id, url, ...SECRETS });
  await untilHolds(() => expect(toldAt('/kept').length).toBeGreaterThan(0));
  await stage[Symbol.asyncDispose]();
  stage = await open();
  const second = await a2aClient(stage.url, 'asker', key);
  // The receiver failed before the restart, and is told now.
  await untilHolds(() => expect(toldAt('/kept').at(-1)).toBe('TASK_STATE_INPUT_REQUIRED'));
  const { configs } = await second.listTaskPushNotificationConfig({
    tenant: '',
    taskId: id,
    pageSize: 0,
    pageToken: '',
  });
  expect(configs).toMatchObject([{ id: 'p1', url, token: '', authentication: { scheme: 'Bearer' } }]);
  expect(configs[0]?.authentication?.credentials).toBe('');
  expect(stateOf((await second.sendMessage(said('size L', { taskId: id }))) as Task)).toBe(
    'TASK_STATE_COMPLETED',
  );
  await untilHolds(() => expect(toldAt('/kept').at(-1)).toBe('TASK_STATE_COMPLETED'));
  const last = receiver.received.at(-1)!;
  expect(last.headers).toMatchObject({
    'content-type': 'application/a2a+json',
    'x-a2a-notification-token': 'for you',
    authorization: 'Bearer abc',
  });
  expect(JSON.parse(last.text)).toMatchObject({ statusUpdate: { taskId: id, contextId } });
  await untilHolds(async () => {
    const gone = second.getTaskPushNotificationConfig({ tenant: '', taskId: id, id: 'p1' });
    await expect(gone).rejects.toMatchObject({ name: 'TaskNotFoundError' });
  });
});

test('a message may say where its states are sent, and what was deleted is sent nothing, in the binding HTTP+JSON too', async () => {
  const client = await a2aClient(stage.url, 'asker', key, 'HTTP+JSON');
  const url = receiver.url.replace('/hook', '/brief');
  const { id } = await begin(client, config('', { url }));
  await untilHolds(() => expect(toldAt('/brief').at(-1)).toBe('TASK_STATE_INPUT_REQUIRED'));
  const { configs } = await client.listTaskPushNotificationConfig({
    tenant: '',
    taskId: id,
    pageSize: 0,
    pageToken: '',
  });
  const known = { tenant: '', taskId: id, id: configs[0]!.id };
  expect(await client.getTaskPushNotificationConfig(known)).toMatchObject({ id: known.id, url });
  await client.deleteTaskPushNotificationConfig(known);
  // Idempotent, as the protocol requires.
  await client.deleteTaskPushNotificationConfig(known);
  const gone = client.getTaskPushNotificationConfig(known);
  await expect(gone).rejects.toMatchObject({ name: 'TaskNotFoundError' });
  const other = receiver.url.replace('/hook', '/other');
  await client.createTaskPushNotificationConfig(config(id, { url: other }));
  await client.sendMessage(said('size L', { taskId: id }));
  await untilHolds(() => expect(toldAt('/other').at(-1)).toBe('TASK_STATE_COMPLETED'));
  expect(toldAt('/brief')).not.toContain('TASK_STATE_COMPLETED');
});

test('a deleted conversation has no notifications, and one of the same id is another', async () => {
  const client = await a2aClient(stage.url, 'asker', key);
  const { id } = await begin(client, config('', { url: receiver.url.replace('/hook', '/gone') }), 'gone');
  await untilHolds(async () => {
    // Refused while the turn ends.
    await stage.troupe.delete('gone', { exported: 'none' });
  });
  const pushes = { tenant: '', taskId: id, pageSize: 0, pageToken: '' };
  await expect(client.listTaskPushNotificationConfig(pushes)).rejects.toMatchObject({
    name: 'TaskNotFoundError',
  });
  expect((await begin(client, undefined, 'gone')).id).toBe(id);
  expect((await client.listTaskPushNotificationConfig(pushes)).configs).toEqual([]);
});

test('a wrong key, the task of another tenant or agent, too many, and addresses that are never called are refused', async () => {
  const client = await a2aClient(stage.url, 'asker', key);
  const { id } = await begin(client);
  const strange = await stage.troupe.forTenant('other').keys.create({ name: 'o', scopes: ['read', 'write'] });
  for (const [agent, as] of [
    ['asker', strange.secret],
    ['cy', key],
  ] as const) {
    const stranger = await a2aClient(stage.url, agent, as);
    const create = stranger.createTaskPushNotificationConfig(config(id));
    await expect(create).rejects.toMatchObject({ name: 'TaskNotFoundError' });
  }
  const wrong = await fetch(`${stage.url}/api/a2a/asker/tasks/${id}/pushNotificationConfigs`, {
    method: 'POST',
    headers: { authorization: 'Bearer wrong', 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ url: receiver.url }),
  });
  expect(wrong.status).toBe(401);
  for (const url of ['http://127.0.0.1:1/', 'http://10.0.0.1/', 'http://localhost/', 'file:///etc/passwd'])
    await expect(client.createTaskPushNotificationConfig(config(id, { url }))).rejects.toThrow(
      /may not be called|not an http/,
    );
  const lines = config(id, { token: 'a\r\nhost: b' });
  await expect(client.createTaskPushNotificationConfig(lines)).rejects.toThrow('visible ASCII');
  const begun = begin(client, config('', { url: 'http://10.0.0.1/' }), 'never');
  await expect(begun).rejects.toThrow('may not be called');
  await expect(stage.troupe.events('never')).rejects.toMatchObject({ code: 'conversation_unknown' });
  for (let n = 0; n < 5; n++) await client.createTaskPushNotificationConfig(config(id, { id: `p${n}` }));
  await expect(client.createTaskPushNotificationConfig(config(id, { id: 'more' }))).rejects.toThrow(
    'may have 5',
  );
});
