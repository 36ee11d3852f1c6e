import { describe, expect, test } from 'vitest';
import type { Mode } from '../../sim/faults.ts';
import { runPool } from '../../sim/pool.ts';
import { runSchedule } from '../../sim/schedule.ts';
import { shrink, describeOutcome } from '../../sim/shrink.ts';
import { suiteSeed } from '../support/engine-random.ts';

const FIXED_SEED = 1;
const SEED = suiteSeed();

describe('the simulation', () => {
  test.each([
    ['full', 50, FIXED_SEED],
    ['full', 50, SEED],
    ['light', 25, FIXED_SEED],
    ['light', 25, SEED],
  ] satisfies [Mode, number, number][])(
    'with %s faults: %i schedules from seed %i keep every invariant',
    async (mode, count, from) => {
      for (let seed = from; seed < from + count; seed++) {
        const outcome = await runSchedule({ seed, mode });
        if (outcome.violations.length > 0) expect.fail(describeOutcome(await shrink(outcome)));
      }
    },
    120_000,
  );

  test.each<Mode>(['full', 'light'])(
    'runs a seed in the same order each time, with %s faults',
    async (mode) => {
      const [first, second] = await Promise.all([
        runSchedule({ seed: SEED, mode }),
        runSchedule({ seed: SEED, mode }),
      ]);
      expect(second.trace).toBe(first.trace);
      expect(second.figures).toEqual(first.figures);
      expect((await runSchedule({ seed: SEED + 1, mode })).trace).not.toBe(first.trace);
    },
  );

  test('replays a list of random faults exactly', async () => {
    const chance = await runSchedule({ seed: SEED, mode: 'full' });
    const again = await runSchedule({ seed: SEED, mode: 'full', replay: chance.faults });
    expect(again.trace).toBe(chance.trace);
    expect(again.faults).toEqual(chance.faults);
  });

  test('catches the removal of the effect ledger', async () => {
    const task = { mode: 'full', from: FIXED_SEED, count: 50 } as const;
    const result = await runPool({
      tasks: [task],
      jobs: 1,
      mutant: 'no effect ledger',
      silenceMs: 200_000,
    });
    expect(result.problem).toBeNull();
    expect(result.violation?.violations.join('\n')).toMatch(/I5 .* ran 2 times/);
  });
});
