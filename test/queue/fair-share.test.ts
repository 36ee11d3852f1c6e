import { describe, expect, test } from 'vitest';
import { TenantId } from '../../src/events/index.ts';
import {
  type Decision,
  createFairShare,
  createStorePace,
  type StorePace,
} from '../../src/queue/fair-share.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const CALM = TenantId.parse('calm');
const NOISY = TenantId.parse('noisy');
const paced = (limit: number): StorePace => ({ took: () => undefined, limit: () => limit });

function stage(limit: number) {
  const clock = createFakeClock();
  const share = createFairShare({ pace: paced(limit), clock });
  const told: Record<Decision['kind'], number> = { begin: 0, later: 0, closed: 0 };
  const later: number[] = [];
  const enter = async (tenant: TenantId) => {
    const admission = await share.enter(tenant);
    told[admission.kind] += 1;
    if (admission.kind === 'later') later.push(admission.inMs);
    return admission.kind;
  };
  return { clock, share, told, later, enter };
}

describe('a worker that tenants share', () => {
  test('lets one tenant alone have all of it, however slow the store is', async () => {
    const { told, enter } = stage(1);
    await Promise.all(Array.from({ length: 64 }, () => enter(NOISY)));
    expect(told).toEqual({ begin: 64, later: 0, closed: 0 });
  });

  test('lets the first of each tenant begin at once, and of a flood what the store keeps pace with', async () => {
    const { clock, told, later, enter } = stage(5);
    await enter(CALM);
    const all = Array.from({ length: 64 }, () => enter(NOISY));
    await clock.advance(0);
    // Five at work with the calm one's; eight wait here, and the rest is to come again, each at a time of its own.
    expect(told).toEqual({ begin: 5, later: 64 - 4 - 8, closed: 0 });
    expect(new Set(later).size).toBe(later.length);
    expect(Math.min(...later)).toBeGreaterThanOrEqual(250);
    expect(Math.max(...later)).toBeLessThanOrEqual(30_000);
    expect(await enter(CALM)).toBe('begin');
    void all;
  });

  test('lets those that wait begin one after the other, as turns end', async () => {
    const { clock, share, told, enter } = stage(1);
    await enter(CALM);
    for (let each = 0; each < 8; each += 1) void enter(NOISY);
    await clock.advance(0);
    expect(told.begin).toBe(5);
    for (let ended = 0; ended < 4; ended += 1) share.leave(NOISY);
    share.leave(CALM);
    await clock.advance(0);
    expect(told.begin).toBe(6);
    share.leave(NOISY);
    await clock.advance(0);
    expect(told.begin).toBe(7);
  });

  test('lets all of a flood begin again when it has been alone for a while', async () => {
    const { clock, told, enter } = stage(1);
    await enter(CALM);
    for (let each = 0; each < 12; each += 1) void enter(NOISY);
    await clock.advance(0);
    expect(told.begin).toBe(5);
    await clock.advance(11_000);
    expect(told.begin).toBe(13);
  });

  test('lets nobody begin who waits when it is closed', async () => {
    const { clock, share, told, enter } = stage(1);
    await enter(CALM);
    for (let each = 0; each < 8; each += 1) void enter(NOISY);
    await clock.advance(0);
    share.close();
    await clock.advance(0);
    expect(told.closed).toBe(4);
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

  test('is all that is allowed as long as it answers as fast as it ever did', async () => {
    expect(await limitAfter(times(100, 5))).toBe(MOST);
  });

  test('falls to one while every operation waits for the others', async () => {
    expect(await limitAfter([...times(10, 5), ...times(30, 200)])).toBe(1);
  });

  test('is all that is allowed again when it is as fast as before', async () => {
    expect(await limitAfter([...times(10, 5), ...times(30, 200), ...times(60, 5)])).toBe(MOST);
  });
});
