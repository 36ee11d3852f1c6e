import { expect, test } from 'vitest';
import { ANA, ECHO, type Harness, scripted, startApi } from './harness.ts';

const BEN = { kind: 'user', id: 'u2', name: 'Ben' } as const;
/** Refuses every request, except one that contains "asked for again". */
const FRAIL = scripted('frail', [
  { when: { contains: 'asked for again' }, reply: 'here' },
  { fail: { code: 'provider_refused' } },
]);

async function failed(): Promise<Harness> {
  const api = await startApi({ agents: [FRAIL, ECHO] });
  await api.troupe.send('c1', { author: ANA, content: 'hello', to: ['frail'] });
  await api.troupe.idle();
  return api;
}

async function kinds({ troupe }: Harness, conversation: string, ...wanted: string[]): Promise<string[]> {
  const { events } = await troupe.events(conversation);
  return events.filter(({ kind }) => wanted.includes(kind)).map(({ id }) => id);
}

test('twenty simultaneous retries give one event and one new turn', async () => {
  await using api = await failed();
  const asked = Array.from({ length: 20 }, (_, n) =>
    api.post('/api/commands', { command: 'retry', turn: 'c1:frail:1', author: n % 2 ? ANA : BEN }),
  );
  const answers = await Promise.all(asked);
  await api.troupe.idle();
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 202));
  expect(new Set(answers.map(({ body }) => body['seq'])).size).toBe(1);
  expect(answers[0]?.body['event']).toMatchObject({
    id: 'c1:frail:1:retry',
    kind: 'command',
    to: ['frail'],
    body: { command: 'retry', agent: 'frail', turn: 'c1:frail:1', code: 'provider_refused', inputs: [1] },
  });
  expect(await kinds(api, 'c1', 'turn.done', 'turn.failed')).toEqual(['c1:frail:1:end', 'c1:frail:2:end']);
  expect(await kinds(api, 'c1', 'command')).toEqual(['c1:frail:1:retry']);
});

test('a retry that is impossible is refused with the reason', async () => {
  await using api = await failed();
  await api.troupe.send('c1', { author: ANA, content: 'hello', to: ['echo'] });
  await api.troupe.idle();
  const retry = (turn: string) => api.post('/api/commands', { command: 'retry', turn });
  expect(await retry('c1:echo:1')).toMatchObject({
    status: 409,
    body: { error: { code: 'command_refused', message: 'turn c1:echo:1 cannot be retried: it is done' } },
  });
  for (const turn of ['c1:echo:7', 'nowhere:echo:1', 'nonsense'])
    expect(await retry(turn), turn).toMatchObject({ status: 404, body: { error: { code: 'turn_unknown' } } });
  expect(await api.post('/api/commands', { command: 'retry' })).toMatchObject({
    status: 400,
    body: { error: { data: { path: 'turn' } } },
  });
});

test('a fork is created once per id, and is a conversation like any other', async () => {
  await using api = await failed();
  const fork = (about: object) => api.post('/api/commands', { command: 'fork', author: ANA, ...about });
  const [one, two] = await Promise.all([1, 2].map(() => fork({ turn: 'c1:frail:1', as: 'c2' })));
  expect(one).toMatchObject({
    status: 202,
    body: { event: { conversation: 'c1', body: { command: 'fork', fork: { conversation: 'c2', seq: 0 } } } },
  });
  expect(two?.body).toEqual(one?.body);
  expect(await fork({ conversation: 'c1', seq: 3 })).toMatchObject({
    status: 202,
    body: { event: { body: { fork: { conversation: 'c1-fork-3', seq: 3 } } } },
  });
  await api.troupe.send('c1-fork-3', { author: ANA, content: 'hello', to: ['echo'] });
  await api.troupe.idle();
  expect(await kinds(api, 'c1-fork-3', 'turn.done', 'turn.failed')).toEqual(['c1-fork-3:echo:1:end']);
  expect((await api.get('/api/conversations/c1-fork-3')).status).toBe(200);

  expect(await fork({ conversation: 'c1', seq: 99 })).toMatchObject({ status: 409 });
  expect(await fork({ conversation: 'c1', seq: 3, as: 'c1' })).toMatchObject({
    status: 409,
    body: { error: { code: 'command_refused' } },
  });
  expect(await fork({ conversation: 'nowhere', seq: 1 })).toMatchObject({ status: 404 });
  expect(await fork({ turn: 'c1:frail:9' })).toMatchObject({ status: 404 });
  expect(await fork({ conversation: 'c1' })).toMatchObject({
    status: 400,
    body: { error: { code: 'event_invalid', data: { path: 'seq' } } },
  });
  expect(await fork({ conversation: 'c1', seq: 1, as: 'not a name' })).toMatchObject({ status: 400 });
});

test('a turn is run again over HTTP, and compared with the original', async () => {
  await using api = await failed();
  const change = { kind: 'message', content: 'asked for again' };
  const rerun = (about: object) => api.post('/api/commands', { command: 'rerun', author: ANA, ...about });
  expect(await rerun({ turn: 'c1:frail:1', change, as: 'c2' })).toMatchObject({
    status: 202,
    body: { event: { conversation: 'c1', body: { fork: { conversation: 'c2' }, rerun: { change } } } },
  });
  await api.troupe.idle();
  expect(await api.get('/api/turns/c1:frail:1/compare/c2:frail:1')).toMatchObject({
    status: 200,
    body: {
      rerun: { turn: 'c1:frail:1', change, tools: 'recorded' },
      a: { status: 'failed', words: '', problem: expect.stringContaining('provider_refused') },
      b: { status: 'done', words: 'here', problem: null },
    },
  });
  expect((await rerun({ turn: 'c1:frail:9' })).status).toBe(404);
  expect((await rerun({ turn: 'c1:frail:1', as: 'c1' })).status).toBe(409);
  const unknown = { kind: 'toolResult', call: 'x', result: '' };
  expect((await rerun({ turn: 'c1:frail:1', change: unknown })).status).toBe(400);
  expect((await api.get('/api/turns/c1:frail:1/compare/c1:frail:9')).status).toBe(404);
});

test('the document describes both', async () => {
  await using api = await startApi();
  const text = JSON.stringify((await api.get('/api/openapi.json')).body['paths']);
  for (const field of ['"retry"', '"fork"', '"as"']) expect(text).toContain(field);
});
