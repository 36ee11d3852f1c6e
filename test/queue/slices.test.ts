import { describe, expect, test } from 'vitest';
import { createSlices } from '../../src/base/slices.ts';

/** A clock whose turns of the event loop take the times in `turns`, one after the other, and then none. */
function turning(turns: readonly number[]) {
  const left = [...turns];
  let now = 0;
  const passed: number[] = [];
  return {
    passed,
    monotonic: () => now,
    async sleep() {
      const ms = left.shift() ?? 0;
      now += ms;
      passed.push(ms);
    },
  };
}

/** The turn of the loop in which each slice began. */
async function begins(turns: readonly number[], count: number): Promise<number[]> {
  const clock = turning(turns);
  const slices = createSlices(clock);
  const began: number[] = [];
  await Promise.all(
    Array.from({ length: count }, () => slices.next().then(() => began.push(clock.passed.length))),
  );
  return began;
}

describe('long work in slices', () => {
  test('continues in the next turn of an idle event loop', async () => {
    // The first turn has begun already. Then comes one of 3 ms with the first slice, then an idle one.
    expect(await begins([0, 3, 0, 3, 0], 2)).toEqual([2, 4]);
  });

  test('gives way while the loop is busy with other work', async () => {
    expect(await begins([0, 3, 3, 3, 3, 0, 3], 2)).toEqual([2, 7]);
  });

  test('gets a fifth of the time of a loop that is never idle', async () => {
    const busy = Array.from({ length: 100 }, () => 1);
    // A slice of 1 ms, then four turns of 1 ms for other work.
    expect(await begins([0, ...busy], 3)).toEqual([2, 7, 12]);
  });

  test('continues in the order of arrival', async () => {
    const slices = createSlices(turning([]));
    const order: string[] = [];
    const job = async (name: string) => {
      for (let part = 1; part <= 3; part += 1) {
        await slices.next();
        order.push(`${name}${part}`);
      }
    };
    await Promise.all([job('a'), job('b')]);
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  });
});
