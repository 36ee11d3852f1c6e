import { expect, test } from 'vitest';
import { randomOf, suiteSeed } from '../support/engine-random.ts';
import { openWorld, type WorldOptions } from '../support/engine-world.ts';

const SEED = suiteSeed();
const ACTIONS = 40;
const MOST_RUNS = 200;

const PLANS: [string, number, Omit<WorldOptions, 'random' | 'steers'>][] = [
  ['one process, killed again and again', 12, { processes: 1, failures: 0.02, kills: true, pauses: false }],
  [
    'two processes, paused for longer than a lease',
    10,
    { processes: 2, failures: 0, kills: false, pauses: true },
  ],
  ['two processes, all of it at once', 12, { processes: 2, failures: 0.02, kills: true, pauses: true }],
  [
    'two machines whose sessions are their own, all of it at once',
    10,
    { processes: 2, failures: 0.02, kills: true, pauses: true, sessions: { rewind: true } },
  ],
];

test.each(PLANS)(
  'people who steer and interrupt, %s: no violation in %i runs, and every prompt follows from the log',
  async (name, runs, plan) => {
    let steered = 0;
    // Few messages come at a moment when they can be taken in: more runs, until one did.
    for (let run = 0; run < runs || (steered === 0 && run < MOST_RUNS); run++) {
      const seed = SEED + run;
      const random = randomOf(seed);
      const world = await openWorld({ ...plan, random, steers: true });
      for (let i = 0; i < ACTIONS; i++) await world.act();
      await world.settle();
      expect(await world.violations(), `TROUPE_SEED=${seed}, ${name}`).toEqual([]);
      steered += world.stats.steered;
    }
    console.log(`TROUPE_SEED=${SEED} ${name}: ${steered} steered`);
    expect(steered).toBeGreaterThan(0);
  },
  120_000,
);
