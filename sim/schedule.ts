import { checkPrompts } from './check-prompts.ts';
import { checkWorld, unsettled } from './check.ts';
import { openClients } from './clients.ts';
import type { Fault, Mode } from './faults.ts';
import { type Figure, LEASE_MS, openWorld, SWEEP_MS, TASK_MS } from './world.ts';

/** What came of one schedule. */
export interface Outcome {
  seed: number;
  mode: Mode;
  violations: string[];
  figures: Record<Figure, number>;
  faults: Fault[];
  /** Of the order in which everything happened. */
  trace: number;
  /** How long it took to settle after the faults, simulated ms. */
  settledMs: number;
}

export interface ScheduleOptions {
  seed: number;
  mode: Mode;
  /** Instead of faults by chance. */
  replay?: readonly Fault[] | undefined;
  plainDedup?: boolean | undefined;
  onStep?: ((line: string) => void) | undefined;
}

/** Steps of the part with faults, and of all: more means that it turns in circles. */
const WILD_STEPS = 6_000;
const MOST_STEPS = 40_000;
/** Beside lease and sweeps: retries of a store that was away, back-off before a model, work itself. */
const WORK_MS = 6_000;

export async function runSchedule(options: ScheduleOptions): Promise<Outcome> {
  const world = openWorld(options);
  const { scheduler, queue, plan } = world;
  const clients = openClients(world);
  // Some time after the last client was served the faults end, wherever the work stands then.
  let left = Math.floor(world.random() * 150);
  await scheduler.run(() => scheduler.steps > WILD_STEPS || (clients.isDone() && left-- <= 0));

  const from = scheduler.now();
  world.calm();
  clients.resumeAll();
  // What a dead process held is found by a sweep, or where nobody sweeps by the second look at stalled jobs.
  const foundMs = world.mode === 'full' ? 2 * (1.25 * SWEEP_MS) : 2 * world.stallMs;
  // Who waits for a summary that a dead process had begun goes on without it after two leases.
  const waitMs = 2 * LEASE_MS;
  // A task that nobody ends ends by its deadline, and then so does what was opened above it.
  const taskMs = 2 * TASK_MS + foundMs;
  const deadline = from + 2 * world.farthestSkew() + LEASE_MS + foundMs + waitMs + taskMs + WORK_MS;
  await scheduler.run(() => {
    if (scheduler.now() > deadline || scheduler.steps > MOST_STEPS) return true;
    if (clients.resumeSetAside() || !queue.isEmpty() || !clients.isDone()) return false;
    return unsettled(world).length === 0 && world.tasks.open().length === 0;
  });
  const violations = [...checkWorld(world, clients), ...(await checkPrompts(world))];
  if (!clients.isDone()) violations.push('CLIENT a client was never answered');
  world.figures.steps = scheduler.steps;
  return {
    seed: options.seed,
    mode: options.mode,
    violations,
    figures: world.figures,
    faults: plan.struck,
    trace: scheduler.trace,
    settledMs: scheduler.now() - from,
  };
}
