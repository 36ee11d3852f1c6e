import { describe, expect, test } from 'vitest';
import { TenantId } from '../../src/events/index.ts';
import {
  type Decision,
  createFairShare,
  createStorePace,
  type StorePace,
} from '../../src/queue/fair-share.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

const CALM = TenantId.parse('calm');
const NOISY = TenantId.parse('noisy');
const paced = (limit: number): StorePace => ({ took: () => undefined, limit: () => limit });

function stage(limit: number) {
  const clock = createFakeClock();
  const share = createFairShare({ pace: paced(limit), clock });
  const decisions: Record<Decision['kind'], number> = { begin: 0, later: 0, closed: 0 };
  const later: number[] = [];
  const enter = async (tenant: TenantId) => {
    const decision = await share.enter(tenant);
    decisions[decision.kind] += 1;
    if (decision.kind === 'later') later.push(decision.inMs);
    return decision.kind;
  };
  return { clock, share, decisions, later, enter };
}

describe('a worker shared by tenants', () => {
  test('gives a single tenant all of it, however slow the store is', async () => {
    const { decisions, enter } = stage(1);
    await Promise.all(Array.from({ length: 64 }, () => enter(NOISY)));
    expect(decisions).toEqual({ begin: 64, later: 0, closed: 0 });
  });

  test('starts the first wakes of each tenant at once, and as many of a flood as the store keeps pace with', async () => {
    const { clock, decisions, later, enter } = stage(5);
    await enter(CALM);
    const all = Array.from({ length: 64 }, () => enter(NOISY));
    await clock.advance(0);
    // Five run, one of them the calm tenant's. Eight wait here. The rest is postponed, each to a different time.
    expect(decisions).toEqual({ begin: 5, later: 64 - 4 - 8, closed: 0 });
    expect(new Set(later).size).toBe(later.length);
    expect(Math.min(...later)).toBeGreaterThanOrEqual(250);
    expect(Math.max(...later)).toBeLessThanOrEqual(30_000);
    expect(await enter(CALM)).toBe('begin');
    void all;
  });

  test('starts waiting wakes one by one as turns end', async () => {
    const { clock, share, decisions, enter } = stage(1);
    await enter(CALM);
    for (let each = 0; each < 8; each += 1) void enter(NOISY);
    await clock.advance(0);
    expect(decisions.begin).toBe(5);
    for (let ended = 0; ended < 4; ended += 1) share.leave(NOISY);
    share.leave(CALM);
    await clock.advance(0);
    expect(decisions.begin).toBe(6);
    share.leave(NOISY);
    await clock.advance(0);
    expect(decisions.begin).toBe(7);
  });

  test('starts a whole flood again once its tenant has been alone for a while', async () => {
    const { clock, decisions, enter } = stage(1);
    await enter(CALM);
    for (let each = 0; each < 12; each += 1) void enter(NOISY);
    await clock.advance(0);
    expect(decisions.begin).toBe(5);
    await clock.advance(11_000);
    expect(decisions.begin).toBe(13);
  });

  test('starts no waiting wake after it is closed', async () => {
    const { clock, share, decisions, enter } = stage(1);
    await enter(CALM);
    for (let each = 0; each < 8; each += 1) void enter(NOISY);
    await clock.advance(0);
    share.close();
    await clock.advance(0);
    expect(decisions.closed).toBe(4);
    expect(await enter(NOISY)).toBe('closed');
    expect(clock.sleeping()).toBe(0);
  });
});

describe('the pace of a store', () => {
  const MOST = 64;

  async function limitAfter(ms: readonly number[]): Promise<number> {
    const clock = createFakeClock();
    const pace = createStorePace(MOST, clock);
    let limit = MOST;
    for (const each of ms) {
      for (let operation = 0; operation < 20; operation += 1) pace.took(each);
      await clock.advance(100);
      limit = pace.limit(limit);
    }
    return limit;
  }
  const times = (count: number, ms: number) => Array.from({ length: count }, () => ms);

  test('stays at the maximum while the store is as fast as ever', async () => {
    expect(await limitAfter(times(100, 5))).toBe(MOST);
  });

  test('falls to one while operations wait for each other', async () => {
    expect(await limitAfter([...times(10, 5), ...times(30, 200)])).toBe(1);
  });

  test('returns to the maximum when the store is as fast as before', async () => {
    expect(await limitAfter([...times(10, 5), ...times(30, 200), ...times(60, 5)])).toBe(MOST);
  });
});
