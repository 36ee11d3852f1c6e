import { expect, test } from 'vitest';
import { randomOf, suiteSeed } from '../support/engine-random.ts';
import { LEASE_MS, openWorld, SWEEP_MS, type World, type WorldOptions } from '../support/engine-world.ts';

const SEED = suiteSeed();
const ACTIONS = 40;
/** Remaining work with its backoffs after the faults stop, beside an expiring lease and two sweeps. */
const WORK_MS = 10_000;

type Plan = Omit<WorldOptions, 'random'>;

async function play(
  plan: Plan,
  seed: number,
): Promise<{ world: World; tookMs: number; violations: string[] }> {
  const random = randomOf(seed);
  const world = await openWorld({ ...plan, random });
  for (let i = 0; i < ACTIONS; i++) await world.act();
  const tookMs = await world.settle();
  return { world, tookMs, violations: await world.violations() };
}

const PLANS: [string, number, Plan][] = [
  [
    'one process, 3 % of store operations failing before or after they were done',
    60,
    { processes: 1, failures: 0.03, kills: false, pauses: false },
  ],
  ['one process, killed again and again', 25, { processes: 1, failures: 0, kills: true, pauses: false }],
  [
    'two processes, paused for longer than a lease',
    40,
    { processes: 2, failures: 0, kills: false, pauses: true },
  ],
  ['two processes, all of it at once', 40, { processes: 2, failures: 0.02, kills: true, pauses: true }],
];

test.each(PLANS)(
  '%s: no violation in %i runs',
  async (name, runs, plan) => {
    const total: Record<string, number> = { slowestMs: 0 };
    for (let run = 0; run < runs; run++) {
      const seed = SEED + run;
      const { world, tookMs, violations } = await play(plan, seed);
      expect(violations, `TROUPE_SEED=${seed}, ${name}`).toEqual([]);
      for (const [key, count] of Object.entries(world.stats)) total[key] = (total[key] ?? 0) + count;
      total['slowestMs'] = Math.max(total['slowestMs'] ?? 0, tookMs);
    }
    console.log(`TROUPE_SEED=${SEED} ${name}: ${JSON.stringify(total)}`);
    expect(total['turns']).toBeGreaterThan(runs);
    expect(total['slowestMs']).toBeLessThan(LEASE_MS + 2 * 1.25 * SWEEP_MS + WORK_MS);
  },
  120_000,
);
