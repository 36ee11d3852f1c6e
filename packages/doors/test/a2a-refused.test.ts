import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { a2aClient, said } from './a2a-client.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
let key = '';

beforeAll(async () => {
  stage = await openStage(['bo', 'cy'], { isKeyed: true });
  key = (await stage.troupe.keys.create({ name: 'x', scopes: ['read', 'write'] })).secret;
});
afterAll(async () => stage[Symbol.asyncDispose]());

async function post(body: unknown, { version = '1.0', as = key, agent = 'bo' } = {}) {
  const response = await fetch(`${stage.url}/api/a2a/${agent}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${as}`,
      ...(version !== '' && { 'a2a-version': version }),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const answer = (await response.json()) as {
    id?: unknown;
    error?: { code: number | string; message: string; data?: { reason: string }[] };
  };
  return {
    status: response.status,
    code: answer.error?.code,
    reason: answer.error?.data?.[0]?.reason,
    answer,
  };
}

const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 7, method, params });
const message = (more: object = {}) => ({
  messageId: 'x',
  role: 'ROLE_USER',
  parts: [{ text: 'Hello' }],
  ...more,
});

test('a wrong key, a missing scope and an unknown agent are refused as everywhere', async () => {
  expect(await post(rpc('GetTask', { id: 'x' }), { as: 'wrong' })).toMatchObject({
    status: 401,
    code: 'token_required',
  });
  const reader = (await stage.troupe.keys.create({ name: 'r', scopes: ['read'] })).secret;
  expect(await post(rpc('SendMessage', { message: message() }), { as: reader })).toMatchObject({
    status: 403,
    code: 'scope_missing',
  });
  const writer = (await stage.troupe.keys.create({ name: 'w', scopes: ['write'] })).secret;
  expect(await post(rpc('ListTasks', {}), { as: writer })).toMatchObject({
    status: 403,
    code: 'scope_missing',
  });
  expect(await post(rpc('ListTasks', {}), { agent: 'nobody' })).toMatchObject({ code: 'agent_unknown' });
  await expect(a2aClient(stage.url, 'bo', 'wrong')).rejects.toThrow('401');
});

test('a task of another tenant, of another agent, or beyond the grant of a key is not found', async () => {
  const other = await stage.troupe.forTenant('other').keys.create({ name: 'o', scopes: ['read', 'write'] });
  const narrow = await stage.troupe.keys.create({
    name: 'n',
    scopes: ['read', 'write'],
    conversations: ['mine-*'],
  });
  const client = await a2aClient(stage.url, 'bo', key);
  const task = await client.sendMessage(said('Hello.'));
  const { id } = task as { id: string };
  expect(await client.getTask({ tenant: '', id })).toMatchObject({ id });
  for (const [agent, as] of [
    ['bo', other.secret],
    ['bo', narrow.secret],
    ['cy', key],
  ] as const) {
    const stranger = await a2aClient(stage.url, agent, as);
    const refused = { name: 'TaskNotFoundError' };
    await expect(stranger.getTask({ tenant: '', id })).rejects.toMatchObject(refused);
    await expect(stranger.cancelTask({ tenant: '', id, metadata: undefined })).rejects.toMatchObject(refused);
    await expect(stranger.sendMessage(said('More', { taskId: id }))).rejects.toMatchObject(refused);
    await expect(stranger.resubscribeTask({ tenant: '', id }).next()).rejects.toMatchObject(refused);
    const { tasks } = await stranger.listTasks({
      tenant: '',
      contextId: '',
      status: 0,
      pageToken: '',
      statusTimestampAfter: undefined,
    });
    expect(tasks).toEqual([]);
  }
  const own = await (await a2aClient(stage.url, 'bo', narrow.secret)).sendMessage(said('Hello.'));
  expect((own as { contextId: string }).contextId).toMatch(/^mine-a2a-/);
});

test.each([
  ['', -32009, 'VERSION_NOT_SUPPORTED'],
  ['0.3', -32009, 'VERSION_NOT_SUPPORTED'],
  ['2.0', -32009, 'VERSION_NOT_SUPPORTED'],
])('the version "%s" is refused', async (version, code, reason) => {
  expect(await post(rpc('ListTasks', {}), { version })).toMatchObject({ status: 200, code, reason });
});

const DEEP = `${'['.repeat(100)}${']'.repeat(100)}`;

test.each([
  ['no JSON', '{', -32700],
  ['deep JSON', `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":${DEEP}}`, -32700],
  ['no request', '[]', -32600],
  ['a method of 0.3', rpc('message/send', {}), -32601],
  ['a method of every object', rpc('constructor', {}), -32601],
  ['no message', rpc('SendMessage', {}), -32602],
  ['no parts', rpc('SendMessage', { message: message({ parts: [] }) }), -32602],
  ['an empty part', rpc('SendMessage', { message: message({ parts: [{}] }) }), -32602],
  ['two contents', rpc('SendMessage', { message: message({ parts: [{ text: 'a', url: 'b' }] }) }), -32602],
  ['the role of an agent', rpc('SendMessage', { message: message({ role: 'ROLE_AGENT' }) }), -32602],
  ['a context that is no id', rpc('SendMessage', { message: message({ contextId: '../x' }) }), -32602],
  ['a wrong page', rpc('ListTasks', { pageToken: 'nowhere' }), -32602],
  ['too large a page', rpc('ListTasks', { pageSize: 101 }), -32602],
  ['an unknown task', rpc('GetTask', { id: 'c1~1' }), -32001],
  ['what is no id of a task', rpc('GetTask', { id: '../../c1' }), -32001],
  ['a file without its bytes', rpc('SendMessage', { message: message({ parts: [{ raw: '*' }] }) }), -32602],
])('%s is refused with the code of the protocol', async (_, body, code) => {
  expect(await post(body)).toMatchObject({ status: 200, code });
});

test('the id of a request is given back with its error', async () => {
  expect((await post(rpc('GetTask', { id: 'c1~1' }))).answer.id).toBe(7);
});

test('a body that is too large is refused before it is read', async () => {
  const request = httpRequest(`${stage.url}/api/a2a/bo`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'content-length': 64 * 1_024 * 1_024,
      authorization: `Bearer ${key}`,
    },
  });
  request.flushHeaders();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(413);
  request.destroy();
});
