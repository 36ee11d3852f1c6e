import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/index.ts';
import type { Health, Troupe } from '../../src/library/troupe.ts';
import { startApi } from './harness.ts';

const WELL: Health = { store: 'ok', queue: 'ok' };

/** A troupe with the given health; `asked` counts the checks. */
function withHealth(health: () => Promise<Health>) {
  const asked = { times: 0 };
  const wrap = (troupe: Troupe): Troupe => ({
    ...troupe,
    health() {
      asked.times += 1;
      return health();
    },
    conversations: () => Promise.reject(new Error('the store is away')),
  });
  return { asked, wrap };
}

test('a process is alive and ready when its services are', async () => {
  await using api = await startApi();
  expect(await api.get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect(await api.get('/readyz')).toMatchObject({ status: 200, body: { status: 'ok', ...WELL } });
});

test.each([
  ['store', { store: 'no MongoDB answers at db:27017', queue: 'ok' }],
  ['queue', { store: 'ok', queue: 'no Redis answers at q:6379' }],
] as const)('without its %s it is alive, not ready, and says what is wrong', async (_, health) => {
  await using api = await startApi(withHealth(() => Promise.resolve(health)));
  const ready = await api.get('/readyz');
  expect(ready).toMatchObject({ status: 503, body: { status: 'unavailable', ...health } });
  expect(ready.headers.get('retry-after')).toBe('1');
  expect((await api.get('/healthz')).status).toBe(200);
});

test('a stopping process is not ready from the first moment on', async () => {
  const stop = new AbortController();
  await using api = await startApi({ signal: stop.signal });
  expect((await api.get('/readyz')).status).toBe(200);
  stop.abort();
  expect(await api.get('/readyz')).toMatchObject({ status: 503, body: { status: 'stopping', ...WELL } });
  expect((await api.get('/healthz')).status).toBe(200);
});

test('load balancers without a token and with any host name are answered, without details', async () => {
  const { wrap } = withHealth(() => Promise.resolve({ store: 'no MongoDB at 10.0.0.7', queue: 'ok' }));
  await using guarded = await startApi({ wrap, token: 's3cret' });
  const headers = { host: '10.1.2.3:4600' };
  expect(await guarded.get('/healthz', { headers })).toMatchObject({ status: 200 });
  const stranger = await guarded.get('/readyz', { headers });
  expect([stranger.status, stranger.body]).toEqual([503, { status: 'unavailable' }]);
  const known = await guarded.get('/readyz', { headers: { ...headers, authorization: 'Bearer s3cret' } });
  expect(known.body).toMatchObject({ store: 'no MongoDB at 10.0.0.7' });
  await using local = await startApi({ wrap });
  expect((await local.get('/readyz', { headers })).body).toEqual({ status: 'unavailable' });
});

test('the services are checked at most once a second', async () => {
  const clock = createFakeClock();
  const { asked, wrap } = withHealth(() => Promise.resolve(WELL));
  await using api = await startApi({ wrap, clock });
  await Promise.all(Array.from({ length: 50 }, () => api.get('/readyz')));
  expect(asked.times).toBe(1);
  await clock.advance(1_000);
  await api.get('/readyz');
  expect(asked.times).toBe(2);
});

test('services that never answer make it not ready, in time for a probe', async () => {
  const { wrap } = withHealth(() => new Promise(() => {}));
  await using api = await startApi({ wrap });
  const { status, body } = await api.get('/readyz');
  expect([status, body]).toMatchObject([503, { store: 'no answer in time', queue: 'no answer in time' }]);
});
