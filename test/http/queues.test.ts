import { expect, test } from 'vitest';
import type { Metrics } from '../../src/events/metrics.ts';
import { watchWaits } from '../../src/library/facade/queues.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { startGuarded, withKey } from './access.ts';
import { systemClock } from '../../src/base/clock.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { IS_DISTRIBUTED } from '../support/mode.ts';
import { ANA, startApi } from './harness.ts';

const NOBODY = { running: [], runningTotal: 0, waiting: [], waitingTotal: 0, oldestMs: null };

function counting(): Metrics & { told: number[] } {
  const told: number[] = [];
  return { told, count: () => {}, change: () => {}, time: (_, __, ms) => void told.push(ms) };
}

test('queues show how long the wakes of this process waited, once there was one', async () => {
  const metrics = counting();
  await using api = await startApi({ troupe: { metrics } });
  const quiet = { waiting: 0, active: 0, delayed: 0, failed: 0 };
  expect((await api.get('/api/queues')).body).toEqual({ ...quiet, wait: null, turns: NOBODY, providers: [] });
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'Hello' });
  await api.troupe.send('c1', { author: ANA, to: ['other'], content: 'Hello' });
  await api.troupe.idle();
  const { body } = await api.get('/api/queues');
  expect(body).toEqual({
    ...quiet,
    wait: { p50Ms: expect.any(Number), p95Ms: expect.any(Number), count: expect.any(Number) },
    turns: NOBODY,
    providers: [],
  });
  const { p50Ms, p95Ms, count } = body['wait'] as { p50Ms: number; p95Ms: number; count: number };
  expect(count).toBeGreaterThanOrEqual(2);
  expect(p50Ms).toBeLessThanOrEqual(p95Ms);
  expect(metrics.told.length, 'the metrics that were given hear it all').toBeGreaterThan(count);
  expect(await api.troupe.queues()).toMatchObject({ waiting: 0, active: 0, delayed: 0, wait: body['wait'] });
});

/** A real queue serves refused turns more slowly. */
const MANY = IS_DISTRIBUTED ? 6 : 63;

test(`with ${MANY} turns behind one slot, the queue names who holds it, who waits, what for and how long`, async () => {
  const vendor = await startFakeOpenAi(() => ({ hang: true }));
  let later = 0;
  const clock = { ...systemClock, now: () => Date.now() + later };
  const bo = { id: 'bo', provider: 'openai-compatible', baseUrl: vendor.url, model: 'bo' } as const;
  const agents = [{ ...bo, contextWindow: 8_000 }];
  const limits = { providers: { 'openai-compatible': { turns: 1 } } };
  await using api = await startApi({ company: { agents, limits }, troupe: { clock } });
  try {
    const say = (conversation: string) =>
      api.troupe.send(conversation, { author: ANA, to: ['bo'], content: 'Hello' });
    await say('c0');
    await expect.poll(() => vendor.requests.length).toBe(1);
    for (let index = 1; index <= MANY; index += 1) await say(`c${index}`);
    await expect.poll(async () => (await api.troupe.queues()).providers[0]?.waiting).toBe(MANY);
    later = 138_000;
    const report = await api.troupe.queues();
    expect(report.turns).toMatchObject({ runningTotal: 1, waitingTotal: MANY });
    expect(report.turns.running).toMatchObject([
      { conversation: 'c0', agent: 'bo', turn: 'c0:bo:1', provider: 'openai-compatible', doing: 'model' },
    ]);
    const [oldest] = report.turns.waiting;
    expect(oldest).toMatchObject({ conversation: 'c1', turn: null, for: 'provider_slot', holders: 1 });
    expect(oldest?.words).toMatch(
      /^waits for a slot of openai-compatible for \d+ (s|min), held by @bo in c0$/,
    );
    expect(report.turns.oldestMs).toBeGreaterThanOrEqual(138_000);
    expect(report.wait?.p95Ms, 'the present waits count').toBeGreaterThanOrEqual(130_000);
    expect(report.providers).toMatchObject([
      { provider: 'openai-compatible', turns: 1, running: 1, waiting: MANY },
    ]);
    const elsewhere = await api.troupe.forTenant('acme').queues();
    expect(elsewhere.turns, 'another tenant is told no names').toEqual(NOBODY);
    expect(JSON.stringify((await api.get('/api/queues')).body)).not.toContain('idle');
  } finally {
    await vendor.close();
  }
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
  expect(await api.troupe.forTenant('acme').queues()).toMatchObject({ waiting: 2, active: 0, delayed: 0 });
});

test('half of the wakes waited at most p50, and 95 of 100 at most p95', () => {
  const metrics = watchWaits(counting(), createFakeClock());
  for (let ms = 100; ms >= 1; ms -= 1) metrics.time('wake_wait', {}, ms);
  expect(metrics.waits()).toEqual({ wait: { p50Ms: 50, p95Ms: 95, count: 100 }, failed: 0 });
  const present = Array.from({ length: 10 }, () => 5_000);
  expect(metrics.waits(present).wait, 'those that wait now').toEqual({ p50Ms: 55, p95Ms: 5_000, count: 110 });
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
