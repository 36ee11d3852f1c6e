import { expect, onTestFinished, test } from 'vitest';
import { createCalibrationCache } from '../../src/actors/actor/calibration-cache.ts';
import { systemClock } from '../../src/base/clock.ts';
import { estimate, NO_TOKENS, type UsageAnchor } from '../../src/context/budget/tokens.ts';
import { type ModelFacts, NOTHING_KNOWN } from '../../src/context/index.ts';
import { TroupeError } from '../../src/base/errors.ts';
import type { TenantId } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import type { Store } from '../../src/store/store.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

const ACME = 'acme' as TenantId;
const SONNET = { provider: 'anthropic', model: 'claude-sonnet-4-5' };
const KINDS = { ...NO_TOKENS, prose: 10_000, system: 2_000 };
const REPORT: UsageAnchor = { kinds: KINDS, reported: 15_000 };

const STORES: Record<string, () => Promise<Store>> = {
  'documents in memory': async () =>
    createStore(
      createDocumentDriver(createMemoryDocuments(), {
        random: Math.random,
        sleep: (ms) => systemClock.sleep(ms),
      }),
    ),
  sqlite: async () => createStore(await openSqliteDriver({ path: ':memory:' })),
};

/** A store that counts its requests, and can be unavailable. */
async function stage(open = STORES['sqlite']!) {
  const real = await open();
  onTestFinished(() => real.close());
  const counts = { get: 0, compareAndSet: 0 };
  const faults = { away: false };
  const warnings: string[] = [];
  const clock = createFakeClock();
  function asked<T>(what: keyof typeof counts, work: () => Promise<T>): Promise<T> {
    counts[what] += 1;
    return faults.away ? Promise.reject(new TroupeError('store_unavailable', 'away')) : work();
  }
  const store: Pick<Store, 'get' | 'compareAndSet'> = {
    get: (...args) => asked('get', () => real.get(...args)),
    compareAndSet: (...args) => asked('compareAndSet', () => real.compareAndSet(...args)),
  };
  const open_ = () =>
    createCalibrationCache({ store, clock, onWarning: (_, where) => void warnings.push(where) });
  return { real, counts, faults, warnings, clock, openCache: open_ };
}

function tokensOf({ calibration }: ModelFacts): number {
  return estimate(calibration, { kinds: KINDS, anchor: null }).tokens;
}

for (const [name, open] of Object.entries(STORES)) {
  test(`what one process learnt, the next one knows (${name})`, async () => {
    const { openCache } = await stage(open);
    const first = openCache();
    expect(await first.get(ACME, SONNET)).toEqual(NOTHING_KNOWN);
    for (let n = 0; n < 5; n += 1) first.observe(ACME, SONNET, REPORT);
    const known = first.learnWindow(ACME, SONNET, 180_000);
    await first.flush();
    expect(known.calibration.reports).toBe(5);
    expect(await openCache().get(ACME, SONNET)).toEqual(known);
  });

  test(`of two processes that learn at once neither is lost (${name})`, async () => {
    const { openCache } = await stage(open);
    const [one, two] = [openCache(), openCache()];
    await Promise.all([one.get(ACME, SONNET), two.get(ACME, SONNET)]);
    for (let n = 0; n < 4; n += 1) {
      one.observe(ACME, SONNET, REPORT);
      two.observe(ACME, SONNET, { ...REPORT, reported: 15_300 });
    }
    two.learnWindow(ACME, SONNET, 190_000);
    await Promise.all([one.flush(), two.flush()]);
    const facts = await openCache().get(ACME, SONNET);
    expect(facts.calibration.reports).toBe(8);
    expect(facts.window).toBe(190_000);
    expect(tokensOf(facts)).toBeGreaterThan(14_700);
    expect(tokensOf(facts)).toBeLessThan(15_500);
  });
}

test('tenants, providers and models are separate', async () => {
  const { openCache } = await stage();
  const cache = openCache();
  cache.learnWindow(ACME, SONNET, 100_000);
  await cache.flush();
  const fresh = openCache();
  expect((await fresh.get(ACME, SONNET)).window).toBe(100_000);
  for (const [tenant, name] of [
    ['globex' as TenantId, SONNET],
    [ACME, { ...SONNET, provider: 'bedrock' }],
    [ACME, { ...SONNET, model: 'claude-opus-5' }],
  ] as const)
    expect(await fresh.get(tenant, name)).toEqual(NOTHING_KNOWN);
});

test('the store is read once a minute, however many turns there are', async () => {
  const { openCache, counts, clock } = await stage();
  const [cache, other] = [openCache(), openCache()];
  await Promise.all(Array.from({ length: 20 }, () => cache.get(ACME, SONNET)));
  expect(counts.get).toBe(1);
  other.learnWindow(ACME, SONNET, 90_000);
  await other.flush();
  await clock.advance(59_999);
  expect((await cache.get(ACME, SONNET)).window).toBeNull();
  expect(counts.get).toBe(1);
  await clock.advance(1);
  expect((await cache.get(ACME, SONNET)).window).toBe(90_000);
  expect(counts.get).toBe(2);
});

test('an entry is written at most every 20 seconds, and at once when a window was learnt', async () => {
  const { openCache, counts, clock, real } = await stage();
  const cache = openCache();
  await cache.get(ACME, SONNET);
  for (let n = 0; n < 30; n += 1) {
    cache.observe(ACME, SONNET, REPORT);
    await clock.advance(1_000);
  }
  expect(counts.compareAndSet).toBe(2);
  cache.learnWindow(ACME, SONNET, 64_000);
  const noted = async () =>
    JSON.parse((await real.get(ACME, 'model ["anthropic","claude-sonnet-4-5"]')) ?? 'null') as unknown;
  await expect.poll(noted).toMatchObject({ window: 64_000, calibration: { reports: 30 } });
  expect(counts.compareAndSet).toBe(3);
});

test('an unavailable store causes one warning, and what was learnt meanwhile is kept', async () => {
  const { openCache, faults, warnings, clock, counts } = await stage();
  const cache = openCache();
  faults.away = true;
  expect(await cache.get(ACME, SONNET)).toEqual(NOTHING_KNOWN);
  for (let n = 0; n < 3; n += 1) {
    cache.observe(ACME, SONNET, REPORT);
    await clock.advance(20_000);
  }
  expect(counts.compareAndSet).toBe(3);
  expect(warnings).toHaveLength(1);
  faults.away = false;
  expect((await cache.get(ACME, SONNET)).calibration.reports).toBe(3);
  await cache.flush();
  expect((await openCache().get(ACME, SONNET)).calibration.reports).toBe(3);
  faults.away = true;
  cache.observe(ACME, SONNET, REPORT);
  await cache.flush();
  expect(warnings).toHaveLength(2);
});

test('an invalid entry counts as none and is overwritten', async () => {
  const { openCache, real, warnings } = await stage();
  const key = 'model ["anthropic","claude-sonnet-4-5"]';
  for (const [from, damaged] of [
    [null, '{'],
    ['{', '{"calibration":{"reports":1,"mean":[9e9],"spread":[]},"window":1}'],
  ] as const) {
    expect(await real.compareAndSet(ACME, key, from, damaged)).toBe(damaged);
    expect(await openCache().get(ACME, SONNET)).toEqual(NOTHING_KNOWN);
  }
  const cache = openCache();
  cache.observe(ACME, SONNET, REPORT);
  await cache.flush();
  expect((await openCache().get(ACME, SONNET)).calibration.reports).toBe(1);
  expect(warnings).toEqual([]);
});
