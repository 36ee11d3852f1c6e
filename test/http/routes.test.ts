import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { createApp, serveHttp } from '../../src/http/api/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { ANA, scripted, startApi } from './harness.ts';

test('conversations, agents and queues are listed', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'x' });
  expect((await api.get('/api/conversations')).body).toMatchObject({
    conversations: [{ id: 'c1', head: 1 }],
  });
  expect((await api.get('/api/agents')).body).toMatchObject({ agents: [{ id: 'echo' }, { id: 'other' }] });
  expect((await api.get('/api/queues')).body).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
});

test('a turn can be traced, its prompt read as it was sent and compared with another', async () => {
  await using api = await startApi();
  for (const content of ['one', 'two']) {
    await api.troupe.send('c1', { author: ANA, to: ['echo'], content });
    await api.troupe.idle();
  }
  expect((await api.get('/api/conversations/c1/actors')).body).toMatchObject({
    actors: [{ agent: 'echo', status: 'idle', lastTurn: 'c1:echo:2', turn: null }],
  });
  expect((await api.get('/api/turns/c1:echo:1')).body).toMatchObject({ status: 'done', agent: 'echo' });
  expect((await api.get('/api/turns/c1:echo:1/prompt?step=1')).body).toMatchObject({
    turn: 'c1:echo:1',
    verified: true,
  });
  const { body } = await api.get('/api/turns/c1%3Aecho%3A1/diff/c1:echo:2');
  expect(body).toMatchObject({ a: { turn: 'c1:echo:1' }, b: { turn: 'c1:echo:2' }, toolsChanged: false });
  const layers = body['layers'] as unknown as { name: string; change: string; tokens: { delta: number } }[];
  expect(layers.find(({ name }) => name === 'rules')).toMatchObject({
    change: 'equal',
    tokens: { delta: 0 },
  });
  expect(layers.find(({ name }) => name === 'history')?.change).toBe('changed');
  expect(body['messages']).toMatchObject({ shared: expect.any(Number), firstDifference: expect.any(Number) });
  const same = await api.get('/api/turns/c1:echo:1/diff/c1:echo:1');
  expect(same.body).toMatchObject({ messages: { firstDifference: null }, tokens: { delta: 0 } });
});

test('the next prompt is built without sending anything', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'for nobody' });
  const { status, body } = await api.get('/api/conversations/c1/agents/echo/prompt');
  expect(status).toBe(200);
  expect(body).toMatchObject({ agent: 'echo', turn: null, tokens: { window: 128_000 } });
  expect(JSON.stringify(body['messages'])).toContain('for nobody');
  expect((await api.troupe.events('c1')).head).toBe(1);
});

test.each([
  ['/api/conversations/nope/events', 'conversation_unknown'],
  ['/api/conversations/nope/actors', 'conversation_unknown'],
  ['/api/conversations/nope/export', 'conversation_unknown'],
  ['/api/conversations/nope/agents/echo/prompt', 'conversation_unknown'],
  ['/api/conversations/c1/agents/nope/prompt', 'agent_unknown'],
  ['/api/turns/nope', 'turn_unknown'],
  ['/api/turns/c1:echo:9/prompt', 'turn_unknown'],
  ['/api/turns/c1:echo:9/diff/c1:echo:8', 'turn_unknown'],
  ['/api/nope', 'route_unknown'],
])('GET %s is 404 %s', async (path, code) => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'x' });
  const { status, body } = await api.get(path);
  expect(status).toBe(404);
  expect(body).toMatchObject({ error: { code, message: expect.any(String), data: expect.any(Object) } });
});

test.each([
  ['PUT', '/api/conversations', 'GET, HEAD'],
  ['GET', '/api/commands', 'POST'],
  ['POST', '/api/turns/c1:echo:9', 'GET, HEAD'],
  ['PATCH', '/api/conversations/c1/events', 'POST, GET, HEAD'],
  ['DELETE', '/api/webhooks', 'GET, HEAD, POST'],
])('%s %s is 405, with the methods that it answers to', async (method, path, allow) => {
  await using api = await startApi();
  for (const mounted of [api.app, new Hono().route('/inspector', api.app)]) {
    const at = mounted === api.app ? path : `/inspector${path}`;
    const response = await mounted.request(at, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
    expect(await response.json()).toMatchObject({ error: { code: 'method_refused' } });
  }
});

test('commands are accepted as events, or refused', async () => {
  await using api = await startApi({
    agents: [scripted('slow', [{ reply: 'slowly', chunk: 1, chunkDelayMs: 60_000 }])],
  });
  const said = new Promise<string>((resolve) => {
    api.troupe.watch((note) => note.type === 'text' && resolve(note.turn));
  });
  await api.troupe.send('c1', { author: ANA, to: ['slow'], content: 'x' });
  const turn = await said;
  const accepted = await api.post('/api/commands', { command: 'abort', turn, author: ANA });
  expect(accepted.status).toBe(202);
  expect(accepted.body).toMatchObject({
    event: { kind: 'command', author: ANA, body: { command: 'abort', turn } },
  });
  expect(accepted.body['seq']).toBe((accepted.body['event'] as { seq: number }).seq);
  await api.troupe.idle();
  expect((await api.get(`/api/turns/${turn}`)).body).toMatchObject({ status: 'aborted' });
  const late = await api.post('/api/commands', { command: 'abort', turn });
  expect([late.status, late.body]).toMatchObject([409, { error: { code: 'command_refused' } }]);
  const pause = await api.post('/api/commands', { command: 'pause', conversation: 'c1', agent: 'slow' });
  expect([pause.status, pause.body]).toMatchObject([202, { event: { author: { id: 'operator' } } }]);
  for (const [body, path] of [
    [{ command: 'explode' }, 'command'],
    [{ command: 'pause', conversation: 'c1' }, 'agent'],
    [{ command: 'pause', conversation: 'c1', agent: 'slow', force: true }, 'force'],
  ] as const) {
    const refused = await api.post('/api/commands', body);
    expect(refused.status).toBe(400);
    const told = refused.body['error'] as { data: { path: string } };
    expect(told.data.path).toBe(path);
  }
});

test('a transcript of any size is imported from the body and exported again', async () => {
  await using api = await startApi();
  const line = (n: number) =>
    `${JSON.stringify({ role: n % 2 === 0 ? 'user' : 'assistant', content: `${n} `.repeat(1_000) })}\n`;
  const text = Array.from({ length: 600 }, (_, n) => line(n)).join('');
  expect(text.length).toBeGreaterThan(1_048_576);
  const path = '/api/import?conversation=old&agent=echo&file=old.jsonl';
  const done = await api.get(path, { method: 'POST', body: text });
  expect(done.status).toBe(201);
  expect(done.body).toMatchObject({
    conversation: 'old',
    conversations: ['old'],
    events: 600,
    format: 'openai',
  });
  const response = await api.app.request('/api/conversations/old/export');
  expect(response.headers.get('content-type')).toContain('application/x-ndjson');
  const lines = (await response.text()).trimEnd().split('\n');
  expect(lines).toHaveLength(601);
  const back = await api.get('/api/import?conversation=copy', {
    method: 'POST',
    body: `${lines.join('\n')}\n`,
  });
  expect(back.body).toMatchObject({ conversation: 'copy', events: 600, format: 'troupe' });
  await api.troupe.send('other', { author: ANA, content: 'mine' });
  const before = await api.troupe.events('other');
  const laid = await api.get('/api/import?conversation=other', { method: 'POST', body: lines.join('\n') });
  expect([laid.status, laid.body]).toMatchObject([400, { error: { code: 'import_invalid' } }]);
  expect(await api.troupe.events('other')).toEqual(before);
  const nonsense = await api.get('/api/import', { method: 'POST', body: 'what is this' });
  expect([nonsense.status, nonsense.body]).toMatchObject([400, { error: { code: 'import_invalid' } }]);
});

/** The paths of A2A's HTTP+JSON binding are described by the protocol's own document. */
const OF_A2A = /^\/api\/a2a\/:\w+\/(?!\.well-known)/;

test('the OpenAPI document names every route and its errors', async () => {
  await using api = await startApi();
  const { body } = await api.get('/api/openapi.json');
  const described = Object.entries(body['paths'] as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`),
  );
  const served = api.app.routes
    .filter(({ method, path }) => method !== 'ALL' && path !== '/api/openapi.json' && !OF_A2A.test(path))
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)(\{[^}]*\})?/g, '{}')}`);
  expect(described.toSorted()).toEqual(served.toSorted());
});

test.each([
  ['store_unavailable', 503, '1'],
  ['queue_unavailable', 503, '1'],
  ['shutting_down', 503, '1'],
  ['store_corrupt', 500, null],
] as const)('%s is %i', async (code, status, retryAfter) => {
  await using api = await startApi({
    wrap: (troupe): Troupe => ({
      ...troupe,
      listConversations: () => Promise.reject(new TroupeError(code, 'the disk is full')),
    }),
  });
  const answer = await api.get('/api/conversations');
  expect(answer.status).toBe(status);
  expect(answer.headers.get('retry-after')).toBe(retryAfter);
  expect(answer.body).toEqual({ error: { code, message: 'the disk is full', data: {} } });
});

test('an unexpected error is a 500 without details, and is reported to the operator', async () => {
  const error = new Error('secret path /home/ana');
  await using api = await startApi({
    wrap: (troupe): Troupe => ({ ...troupe, queues: () => Promise.reject(error) }),
  });
  const { status, body } = await api.get('/api/queues');
  expect(status).toBe(500);
  expect(JSON.stringify(body)).not.toContain('secret');
  expect(JSON.stringify(body)).not.toContain('.ts:');
  expect(api.errors).toEqual([error]);
});

test('a busy port is skipped for the next free one, and closing ends open streams', async () => {
  await using api = await startApi();
  const squatter = createServer().listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  const { port } = squatter.address() as AddressInfo;
  const stop = new AbortController();
  const app = createApp(api.troupe, { signal: stop.signal });
  const server = await serveHttp(app, { port });
  expect(server.port).toBeGreaterThan(port);
  expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
  const stream = await fetch(`${server.url}/api/events`);
  const reading = stream.text();
  stop.abort();
  await server.close();
  expect(await reading).toContain('retry:');
  squatter.close();
});
