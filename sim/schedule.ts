import { checkPrompts } from './check-prompts.ts';
import { checkWorld, unsettled } from './check.ts';
import { openClients } from './clients.ts';
import type { Fault, Mode } from './faults.ts';
import { type Figure, LEASE_MS, openWorld, SWEEP_MS, TASK_MS } from './world.ts';

/** The result of one schedule. */
export interface Outcome {
  seed: number;
  mode: Mode;
  violations: string[];
  figures: Record<Figure, number>;
  faults: Fault[];
  /** Hash of the order of all steps. */
  trace: number;
  /** Time from the end of the faults until it settled, simulated ms. */
  settledMs: number;
}

export interface ScheduleOptions {
  seed: number;
  mode: Mode;
  /** Replaces the random faults. */
  replay?: readonly Fault[] | undefined;
  plainDedup?: boolean | undefined;
  onStep?: ((line: string) => void) | undefined;
}

/** Maximum of steps with faults, and of all steps; more means an endless loop. */
const WILD_STEPS = 6_000;
const MOST_STEPS = 40_000;
/** Time besides lease and sweeps: retries of an unavailable store, backoff before a model, the work itself. */
const WORK_MS = 6_000;

export async function runSchedule(options: ScheduleOptions): Promise<Outcome> {
  const world = openWorld(options);
  const { scheduler, queue, plan } = world;
  const clients = openClients(world);
  // The faults end some time after the last client was served, whatever is still under way.
  let left = Math.floor(world.random() * 150);
  await scheduler.run(() => scheduler.steps > WILD_STEPS || (clients.isDone() && left-- <= 0));

  const from = scheduler.now();
  world.calm();
  clients.resumeAll();
  // Work of a dead process is found by a sweep, or without sweeps by the second check for stalled jobs.
  const foundMs = world.mode === 'full' ? 2 * (1.25 * SWEEP_MS) : 2 * world.stallMs;
  // A turn that waits for a summary from a dead process continues without it after two leases.
  const waitMs = 2 * LEASE_MS;
  // An unanswered task ends by its deadline; then its parent task can end.
  const taskMs = 2 * TASK_MS + foundMs;
  const deadline = from + 2 * world.farthestSkew() + LEASE_MS + foundMs + waitMs + taskMs + WORK_MS;
  await scheduler.run(() => {
    if (scheduler.now() > deadline || scheduler.steps > MOST_STEPS) return true;
    if (clients.resumeParked() || !queue.isEmpty() || !clients.isDone()) return false;
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
