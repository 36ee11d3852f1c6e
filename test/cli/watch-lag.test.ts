import { expect, test } from 'vitest';
import { watchLag } from '../../src/cli/commands/serve.ts';

/** A sleep takes its normal time plus the next of `stalls`. */
function clockWith(stalls: number[]) {
  let time = 0;
  const slept: number[] = [];
  return {
    slept,
    monotonic: () => time,
    async sleep(ms: number, signal?: AbortSignal) {
      const stall = stalls.shift();
      // No stall is left: sleeps until the watch ends.
      if (stall === undefined) {
        await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
        return;
      }
      slept.push(ms);
      time += ms + stall;
    },
  };
}

async function stallsSeen(maxLagMs: number, stalls: number[]): Promise<number[]> {
  const seen: number[] = [];
  const clock = clockWith(stalls);
  const unwatch = watchLag({ clock, maxLagMs, onStall: (lag) => seen.push(lag) });
  // The clock never waits: all beats are over before the event loop turns.
  await new Promise((resolve) => setImmediate(resolve));
  unwatch();
  return seen;
}

test('a single stall beyond the limit is noticed with its length', async () => {
  expect(await stallsSeen(15_000, [3, 40, 15_001, 0])).toEqual([15_001]);
});

test('small stalls are not added up, and one of exactly the limit is tolerated', async () => {
  expect(
    await stallsSeen(
      100,
      Array.from({ length: 50 }, () => 100),
    ),
  ).toEqual([]);
});

test('0 disables the watch', async () => {
  expect(await stallsSeen(0, [60_000])).toEqual([]);
});

test('an ended watch does not report a stall during shutdown', async () => {
  const seen: number[] = [];
  let time = 0;
  let wake = () => {};
  const clock = {
    monotonic: () => time,
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        wake = resolve;
        signal?.addEventListener('abort', () => resolve());
      }),
  };
  const unwatch = watchLag({ clock, maxLagMs: 10, onStall: (lag) => seen.push(lag) });
  time = 99_999;
  unwatch();
  wake();
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual([]);
});
