import { expect, test } from 'vitest';
import type { Metrics } from '../../src/metrics.ts';
import { watchWaits } from '../../src/runtime/queue-waits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { startGuarded, withKey } from './access.ts';
import { ANA, startApi } from './harness.ts';

function counting(): Metrics & { told: number[] } {
  const told: number[] = [];
  return { told, count: () => {}, change: () => {}, time: (_, __, ms) => void told.push(ms) };
}

test('queues show how long the wakes of this process waited, once there was one', async () => {
  const metrics = counting();
  await using api = await startApi({ troupe: { metrics } });
  const quiet = { waiting: 0, active: 0, delayed: 0, failed: 0 };
  expect((await api.get('/api/queues')).body).toEqual({ ...quiet, wait: null });
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'Hello' });
  await api.troupe.send('c1', { author: ANA, to: ['other'], content: 'Hello' });
  await api.troupe.idle();
  const { body } = await api.get('/api/queues');
  expect(body).toEqual({
    ...quiet,
    wait: { p50Ms: expect.any(Number), p95Ms: expect.any(Number), count: expect.any(Number) },
  });
  const { p50Ms, p95Ms, count } = body['wait'] as { p50Ms: number; p95Ms: number; count: number };
  expect(count).toBeGreaterThanOrEqual(2);
  expect(p50Ms).toBeLessThanOrEqual(p95Ms);
  expect(metrics.told.length, 'the metrics that were given hear it all').toBeGreaterThan(count);
  expect(await api.troupe.queues()).toEqual({ waiting: 0, active: 0, delayed: 0, wait: body['wait'] });
});

test('the queued work of other tenants and conversations is shown to server administrators only', async () => {
  let waiting = 0;
  await using api = await startGuarded({ troupe: { work: false } });
  const [house, user, guest, acme] = await Promise.all([
    withKey(api),
    withKey(api, { scopes: ['read'] }),
    withKey(api, { scopes: ['read', 'admin'], conversations: ['team-*'] }),
    withKey(api, {}, 'acme'),
  ]);
  for (const [tenant, conversation] of [
    ['default', 'c1'],
    ['acme', 'c1'],
    ['acme', 'c2'],
  ] as const) {
    await api.troupe.forTenant(tenant).send(conversation, { author: ANA, to: ['echo'], content: 'x' });
    waiting += 1;
  }
  const told = await Promise.all(
    [house, user, guest, acme].map(async (who) => (await who.get('/api/queues')).body['waiting']),
  );
  expect(told).toEqual([waiting, 1, 0, 2]);
  expect(await api.troupe.forTenant('acme').queues()).toEqual({ waiting: 2, active: 0, delayed: 0 });
});

test('half of the wakes waited at most p50, and 95 of 100 at most p95', () => {
  const metrics = watchWaits(counting(), createFakeClock());
  for (let ms = 100; ms >= 1; ms -= 1) metrics.time('wake_wait', {}, ms);
  expect(metrics.waits()).toEqual({ wait: { p50Ms: 50, p95Ms: 95, count: 100 }, failed: 0 });
});

test('a wake whose work failed is counted as failed', () => {
  const metrics = watchWaits(counting(), createFakeClock());
  metrics.time('activation', { outcome: 'done' }, 5);
  metrics.time('activation', { outcome: 'failed' }, 5);
  metrics.time('model_call', { provider: 'scripted' }, 5);
  expect(metrics.waits()).toEqual({ wait: null, failed: 1 });
});

test('only the last 1,000 wakes of the last 5 minutes count', async () => {
  const clock = createFakeClock();
  const metrics = watchWaits(counting(), clock);
  for (let index = 0; index < 1_500; index += 1) metrics.time('wake_wait', {}, index < 1_000 ? 9 : 1);
  expect(metrics.waits().wait).toEqual({ p50Ms: 1, p95Ms: 9, count: 1_000 });
  await clock.advance(299_000);
  metrics.time('wake_wait', {}, -3);
  await clock.advance(2_000);
  expect(metrics.waits().wait).toEqual({ p50Ms: 0, p95Ms: 0, count: 1 });
  await clock.advance(300_000);
  expect(metrics.waits().wait).toBeNull();
});
