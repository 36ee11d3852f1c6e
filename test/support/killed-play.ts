import type { Event } from '../../src/events/index.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { forever, type Phase, type StoreOp, tapDriver } from './engine-driver.ts';
import { allEvents, openStage, type Stage, type StageOptions, turns } from './engine-stage.ts';
import { IS_DISTRIBUTED, openDriver } from './mode.ts';

/** One look at or write into the store, by what was asked. */
export interface Point {
  op: StoreOp;
  phase: Phase;
}

export interface Played {
  stage: Stage;
  driver: StoreDriver;
  /** What the first process asked of the store, as far as it came. */
  points: Point[];
  died: boolean;
}

export interface Play {
  options: Omit<StageOptions, 'driver' | 'clock'>;
  /** What clients and people do, again in every round until all is quiet: whoever has no answer asks again. */
  act: (stage: Stage) => Promise<unknown>;
}

/** In one directory the dead process's leases are known to be dead; on servers they have to run out. */
const LIMITS = IS_DISTRIBUTED ? { soleOwner: false, leaseMs: 2_000, sweepMs: 3_000 } : { soleOwner: true };
const STEP_MS = 20;
const QUIET_ROUNDS = 4;
const PATIENCE = 4_000;

/**
 * Plays with a process that dies at its `at`th operation, before or after it was done, and goes on with another until
 * all is quiet. With 0 nobody dies.
 */
export async function playKilledAt(at: number, { options, act }: Play): Promise<Played> {
  const driver = await openDriver();
  const points: Point[] = [];
  let dead = false;
  const mortal = tapDriver(driver, (op, phase) => {
    if (dead) return forever();
    points.push({ op, phase });
    dead = points.length === at;
    return dead ? forever() : undefined;
  });
  const open = (over: StoreDriver, now?: number) =>
    openStage({
      ...options,
      driver: over,
      clock: createFakeClock(now),
      random: () => 0.5,
      limits: { ...LIMITS, ...options.limits },
    });
  const first = await open(mortal);
  await drive(first, act, () => dead);
  if (!dead) return { stage: first, driver, points: [...points], died: false };
  // What it had handed to the store still lands.
  await turns(5);
  const next = await open(driver, first.clock.now());
  await drive(next, act, () => false);
  return { stage: next, driver, points, died: true };
}

/** Until nothing is waiting or running and nobody acts any more, or the process is dead. */
async function drive(stage: Stage, act: Play['act'], isDead: () => boolean): Promise<void> {
  const { clock, deps } = stage;
  const { limits, router, store } = deps;
  for (let round = 0, still = 0; !isDead(); round++) {
    if (round > PATIENCE) throw new Error(`never quiet: ${JSON.stringify(await router.depth())}`);
    // Of a process that is dead nobody waits for an answer.
    let isActing = true;
    void act(stage).finally(() => (isActing = false));
    for (let turn = 0; isActing && !isDead() && turn < 200; turn++) await clock.advance(1);
    const { waiting, active, delayed } = await router.depth();
    still = waiting + active + delayed === 0 ? still + 1 : 0;
    await clock.advance(STEP_MS);
    if (still < QUIET_ROUNDS || isDead()) continue;
    const now = clock.now();
    const due = await Promise.race([
      store.due({ now: now + limits.leaseMs, clock: now, since: 0, limit: 1 }),
      turns(400).then(() => []),
    ]);
    if (due.length === 0) return;
    still = 0;
    await clock.advance(limits.sweepMs);
  }
}

/** All conversations of a store, by id, oldest event first. */
export async function allLogs({ store }: Stage): Promise<Map<string, Event[]>> {
  const known = await store.conversations('default' as Event['tenant'], 100);
  const ids = known.map(({ id }) => id as string).toSorted();
  return new Map(await Promise.all(ids.map(async (id) => [id, await allEvents(store, id)] as const)));
}
