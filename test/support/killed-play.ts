import type { Event } from '../../src/events/index.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { forever, isRead, type Phase, type StoreOp, tapDriver } from './engine-driver.ts';
import { allEvents, openStage, type Stage, type StageOptions, turns } from './engine-stage.ts';
import { IS_DISTRIBUTED, openDriver } from './mode.ts';

/** The edge of one write of the store. */
export interface Point {
  op: StoreOp;
  phase: Phase;
}

export interface Played {
  stage: Stage;
  driver: StoreDriver;
  /** The writes of the first process until its death. */
  points: Point[];
  died: boolean;
}

export interface Play {
  options: Omit<StageOptions, 'driver' | 'clock'>;
  /**
   * Actions of clients and people. Every round repeats them until all is quiet: a caller without an answer asks
   * again.
   */
  act: (stage: Stage) => Promise<unknown>;
}

/** In one directory the leases of the dead process are known to be void; on servers they have to expire. */
const LIMITS = IS_DISTRIBUTED ? { soleOwner: false, leaseMs: 2_000, sweepMs: 3_000 } : { soleOwner: true };
const STEP_MS = 20;
const QUIET_ROUNDS = 4;
const PATIENCE = 4_000;

/**
 * Runs a play whose process dies at the `at`th edge of a write, before or after it took effect; another process
 * continues until all is quiet. With 0 no process dies.
 */
export async function playKilledAt(at: number, { options, act }: Play): Promise<Played> {
  const driver = await openDriver();
  const points: Point[] = [];
  let dead = false;
  const mortal = tapDriver(driver, (op, phase) => {
    if (dead) return forever();
    if (isRead(op)) return undefined;
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
  // Writes that the process had handed to the store still take effect.
  await turns(5);
  const next = await open(driver, first.clock.now());
  await drive(next, act, () => false);
  return { stage: next, driver, points, died: true };
}

/** Runs until nothing is waiting or running and no client acts any more, or the process is dead. */
async function drive(stage: Stage, act: Play['act'], isDead: () => boolean): Promise<void> {
  const { clock, deps } = stage;
  const { limits, router, store } = deps;
  for (let round = 0, still = 0; !isDead(); round++) {
    if (round > PATIENCE) throw new Error(`still busy: ${JSON.stringify(await router.depth())}`);
    // No client waits for an answer of a dead process.
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
