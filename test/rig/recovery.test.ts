import { expect, onTestFinished, test } from 'vitest';
import { createRecovery, percentile } from '../../rig/recovery.ts';
import type { ActorRecord } from '../../src/events/index.ts';

const POLL_MS = 5;
const WORK = { process: 'p1', conversation: 'k0', agent: 'bo' };

/** Watches one kill of a process with this record; `set` changes what is stored. */
function watchOne(before: Stored) {
  let stored = before;
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const recovery = createRecovery(
    { readActor: () => Promise.resolve(stored as ActorRecord) },
    ended.signal,
    POLL_MS,
  );
  recovery.watch([WORK], Date.now());
  return { recovery, ended, set: (now: Stored) => (stored = now) };
}

interface Stored {
  fence: number;
  owner: string;
  turn: object | null;
}

const AT_WORK: Stored = { fence: 4, owner: 'p1:x', turn: {} };

test('an interrupted turn counts from the kill until its fence rises', async () => {
  const killedAt = Date.now();
  const { recovery, set } = watchOne(AT_WORK);
  await new Promise((resolve) => setImmediate(resolve));
  expect(recovery.open()).toBe(1);
  set({ fence: 5, owner: 'p2:y', turn: {} });
  await expect.poll(() => recovery.open()).toBe(0);
  expect(recovery.times).toHaveLength(1);
  expect(recovery.times[0]).toBeGreaterThan(0);
  expect(recovery.times[0]).toBeLessThanOrEqual(Date.now() - killedAt);
});

test('a turn committed before or during the kill is no recovery', async () => {
  const committed = watchOne({ fence: 4, owner: '', turn: null });
  const inFlight = watchOne(AT_WORK);
  await new Promise((resolve) => setImmediate(resolve));
  inFlight.set({ fence: 4, owner: 'p1:x', turn: null });
  await expect.poll(() => [committed.recovery.open(), inFlight.recovery.open()]).toEqual([0, 0]);
  expect([...committed.recovery.times, ...inFlight.recovery.times]).toEqual([]);
});

test('a turn not resumed by the end of the watch stays open until then', async () => {
  const { recovery, ended } = watchOne(AT_WORK);
  expect(recovery.open()).toBe(1);
  ended.abort();
  await expect.poll(() => recovery.open()).toBe(0);
  expect(recovery.times).toEqual([]);
});

test('the 99th percentile of fewer than a hundred is the longest', () => {
  expect(percentile([3, 9, 1], 0.99)).toBe(9);
  expect(percentile([], 0.99)).toBe(0);
});
