import { expect, test } from 'vitest';
import { randomOf, suiteSeed } from '../support/engine-random.ts';
import { openWorld, type WorldOptions } from '../support/engine-world.ts';

const SEED = suiteSeed();
const ACTIONS = 40;

const PLANS: [string, number, Omit<WorldOptions, 'random'>][] = [
  [
    'one process, killed again and again',
    12,
    { processes: 1, failures: 0.02, kills: true, pauses: false, supervised: true },
  ],
  [
    'two processes, all of it at once, and people who steer',
    12,
    { processes: 2, failures: 0.02, kills: true, pauses: true, supervised: true, steers: true },
  ],
  [
    'two machines whose sessions are their own',
    12,
    {
      processes: 2,
      failures: 0.02,
      kills: true,
      pauses: true,
      supervised: true,
      sessions: { rewind: true },
    },
  ],
];

test.each(PLANS)(
  'turns with corrections, %s: no violation in %i runs',
  async (name, runs, plan) => {
    let corrections = 0;
    for (let run = 0; run < runs; run++) {
      const seed = SEED + run;
      const random = randomOf(seed);
      const world = await openWorld({ ...plan, random });
      for (let i = 0; i < ACTIONS; i++) await world.act();
      await world.settle();
      expect(await world.violations(), `TROUPE_SEED=${seed}, ${name}`).toEqual([]);
      corrections += world.stats.corrections;
    }
    console.log(`TROUPE_SEED=${SEED} ${name}: ${corrections} corrections`);
    expect(corrections).toBeGreaterThan(runs);
  },
  120_000,
);
