import { expect, test } from 'vitest';
import { randomOf, suiteSeed } from '../support/engine-random.ts';
import { openWorld, type WorldOptions } from '../support/engine-world.ts';

const SEED = suiteSeed();
const ACTIONS = 40;

const PLANS: [string, number, Omit<WorldOptions, 'random'>][] = [
  [
    'one process, killed again and again, sessions that can be taken back',
    12,
    { processes: 1, failures: 0.02, kills: true, pauses: false, sessions: { rewind: true } },
  ],
  [
    'one process, killed again and again, sessions that can not',
    12,
    { processes: 1, failures: 0.02, kills: true, pauses: false, sessions: { rewind: false } },
  ],
  [
    'two machines, paused and killed, whose sessions are their own',
    12,
    { processes: 2, failures: 0.02, kills: true, pauses: true, sessions: { rewind: true } },
  ],
];

test.each(PLANS)(
  '%s: in %i runs a session shows its agent every visible event exactly once',
  async (name, runs, plan) => {
    let turns = 0;
    for (let run = 0; run < runs; run++) {
      const seed = SEED + run;
      const random = randomOf(seed);
      const world = await openWorld({ ...plan, random });
      for (let i = 0; i < ACTIONS; i++) await world.act();
      await world.settle();
      expect(await world.violations(), `TROUPE_SEED=${seed}, ${name}`).toEqual([]);
      turns += world.stats.turns;
    }
    console.log(`TROUPE_SEED=${SEED} ${name}: ${turns} turns`);
    expect(turns).toBeGreaterThan(runs);
  },
  120_000,
);
