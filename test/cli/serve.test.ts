import { createServer } from 'node:http';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { shownUrl } from '../../src/cli/process/operator-flags.ts';
import { ask, siteTest, TOKEN } from './distributed.ts';
import { readEvents } from './read-events.ts';
import { workplace } from './harness.ts';

const NOWHERE = { MONGODB_URL: 'mongodb://127.0.0.1:1/x', REDIS_URL: 'redis://127.0.0.1:1' };
/** MongoDB's own limits of an hour: a test that ends shows ours. */
const PATIENT = 'serverSelectionTimeoutMS=3600000&connectTimeoutMS=3600000';

describe('without its requirements', () => {
  test.each(['serve', 'worker'])(
    '%s names the missing server, the way to configure it, and the command that needs none',
    async (command) => {
      using place = workplace();
      const env = { MONGODB_URL: '', REDIS_URL: '' };
      const { code, json } = await place.call([command, '--json'], { env });
      expect([code, json]).toMatchObject([
        1,
        { error: { code: 'config_invalid', data: { variable: 'MONGODB_URL' } } },
      ]);
      const half = await place.call([command], { env: { ...env, MONGODB_URL: NOWHERE.MONGODB_URL } });
      expect(half.err).toMatch(/^config_invalid: .*REDIS_URL.*--redis.*troupe dev/);
      const two = await place.call([command], {
        env: { ...NOWHERE, POSTGRES_URL: 'postgres://127.0.0.1:1/x' },
      });
      expect(two.err).toMatch(/^config_invalid: mongodb and postgres are both given/);
    },
  );

  test('a URL of another scheme is refused and not repeated', async () => {
    using place = workplace();
    const env = { ...NOWHERE, REDIS_URL: 's3cret-canary' };
    const { code, err } = await place.call(['serve'], { env });
    expect([code, err]).toMatchObject([1, expect.stringMatching(/^config_invalid: REDIS_URL .*redis:\/\//)]);
    expect(err).not.toContain('canary');
  });

  test('metrics at a public address need a token', async () => {
    using place = workplace();
    const { code, err } = await place.call(['worker', '--status-host', '0.0.0.0'], { env: NOWHERE });
    expect([code, err]).toMatchObject([1, expect.stringMatching(/^config_invalid: .*TROUPE_TOKEN/)]);
  });

  test('an unusable token is refused with its variable, and is not shown', async () => {
    using place = workplace();
    const env = { ...NOWHERE, TROUPE_TOKEN: 'two canary-words' };
    for (const command of [['dev', '--port', '0'], ['worker']]) {
      const { code, out, err } = await place.call(command, { env });
      expect([code, err]).toMatchObject([
        1,
        expect.stringMatching(/^config_invalid: TROUPE_TOKEN .*one word/),
      ]);
      expect(out + err).not.toContain('canary');
    }
  });

  test('there is no demo company: a missing agents file is named', async () => {
    using place = workplace({ agents: null });
    const { code, err } = await place.call(['worker'], { env: NOWHERE });
    expect([code, err]).toMatchObject([1, expect.stringMatching(/^config_invalid: no agents file found/)]);
  });

  test.each([
    ['a port without a server', `mongodb://ana:canary@127.0.0.1:1/x?${PATIENT}`],
    ['an unknown host', `mongodb://ana:canary@mongodb.invalid/x?${PATIENT}`],
  ])('MongoDB at %s is a named error soon, without the password', async (_, url) => {
    using place = workplace();
    const { code, json, out, err } = await place.call(['serve', '--json'], {
      env: { ...NOWHERE, MONGODB_URL: url },
    });
    expect([code, json]).toMatchObject([1, { error: { code: 'store_unavailable' } }]);
    expect(out + err).not.toContain('canary');
  });
});

siteTest('an unreachable Redis is a named error soon, without the password', async ({ place, env }) => {
  const silent = createTcpServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  for (const [at, why] of [
    [1, 'ECONNREFUSED'],
    // This server would never answer.
    [port, 'no answer in 3 s'],
  ] as const) {
    const args = ['--status-port', '0', '--redis', `redis://ana:canary@127.0.0.1:${at}`];
    const { code, json, out, err } = await place.call(['worker', '--json', ...args], { env });
    expect([code, json]).toMatchObject([1, { error: { code: 'queue_unavailable' } }]);
    expect(err).toContain(why);
    expect(out + err).not.toContain('canary');
  }
  silent.close();
});

siteTest('an API without any credential is not started, not even on loopback', async ({ place, env }) => {
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    const { code, err } = await place.call(['serve', '--port', '0', '--host', host], { env });
    expect([code, err]).toMatchObject([1, expect.stringMatching(/^config_invalid: .*TROUPE_TOKEN/)]);
  }
});

siteTest('the API requires a credential', async ({ serve }) => {
  const api = await serve();
  expect((await fetch(`${api.url}/api/conversations`)).status).toBe(401);
  expect((await fetch(`${api.url}/metrics`)).status).toBe(401);
  expect((await ask(`${api.url}/api/conversations`)).status).toBe(200);
});

siteTest('a message posted to the API is answered by a worker, and the answer is streamed', async (site) => {
  const api = await site.serve();
  expect(api.ready).toMatchObject({
    mongodb: expect.stringMatching(/^mongodb:/),
    redis: expect.stringMatching(/^redis:/),
  });
  const response = await ask(`${api.url}/api/events?conversation=c1&after=0`);
  await site.worker();
  const body = JSON.stringify({
    author: { kind: 'user', id: 'ana', name: 'Ana' },
    to: ['slow'],
    content: 'Hi',
  });
  const posted = await ask(`${api.url}/api/conversations/c1/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect(posted.status).toBe(201);
  const frames = await readEvents(response, (seen) => seen.some(({ data }) => data['kind'] === 'turn.done'));
  const streamed = frames.filter(({ event }) => event === 'stream').map(({ data }) => data['text']);
  expect(streamed.join('')).toBe('abcdefgh');
  const replies = frames.filter(({ event, data }) => event === 'event' && data['kind'] === 'message');
  expect(replies.at(-1)?.data).toMatchObject({ author: { id: 'slow' }, body: { content: 'abcdefgh' } });
});

siteTest('commands work through the API as with an embedded server', async ({ place, serve, worker }) => {
  const api = await serve();
  await worker();
  const env = { TROUPE_URL: api.url, TROUPE_TOKEN: TOKEN };
  const sent = await place.call(['send', 'c1', 'Hello', '--to', 'worker', '--wait', '--json'], { env });
  expect(sent.json).toMatchObject({ replies: [{ body: { content: 'work 1' } }] });
  expect((await place.call(['trace', 'c1:worker:1', '--json'], { env })).json).toMatchObject({
    status: 'done',
  });
  expect((await place.call(['ls', '--json'], { env })).json).toMatchObject({
    conversations: [{ id: 'c1' }],
  });
});

siteTest('a busy port is refused: a balancer expects the API there', async ({ place, env }) => {
  const squatter = createServer().listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  const { port } = squatter.address() as AddressInfo;
  const { code, json } = await place.call(['serve', '--port', `${port}`, '--json'], {
    env: { ...env, TROUPE_TOKEN: TOKEN },
  });
  expect([code, json]).toMatchObject([1, { error: { code: 'config_invalid', data: { port } } }]);
  squatter.close();
});

siteTest('on a signal it is no longer ready, answers for a while, and ends', async ({ serve }) => {
  const api = await serve();
  const stream = await ask(`${api.url}/api/events`);
  expect((await ask(`${api.url}/readyz`)).status).toBe(200);
  api.child.kill('SIGTERM');
  await stream.text();
  expect(await (await ask(`${api.url}/readyz`)).json()).toMatchObject({ status: 'stopping' });
  expect((await ask(`${api.url}/api/conversations`)).status).toBe(200);
  expect(await api.exited).toBe(0);
});

test.each([
  ['mongodb://db:27017/troupe?replicaSet=rs0', 'mongodb://db:27017/troupe'],
  ['mongodb://ana:s3cret@a:1,b:2/troupe', 'mongodb://a:1,b:2/troupe'],
  ['mongodb://ana:p@ss/w?rd#1@db/troupe?tlsCertificateKeyFilePassword=x', 'mongodb://db/troupe'],
  ['mongodb+srv://ana@cluster.example', 'mongodb+srv://cluster.example'],
  ['rediss://:s3cret@cache:6379/2', 'rediss://cache:6379/2'],
])('%s is shown as %s', (url, shown) => {
  expect(shownUrl(url)).toBe(shown);
});
