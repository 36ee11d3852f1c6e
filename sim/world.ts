import type { EngineLimits } from '../src/actors/actor/engine-deps.ts';
import { TroupeError } from '../src/base/errors.ts';
import type { ActorAddress } from '../src/events/index.ts';
import type { Notice } from '../src/queue/broadcast.ts';
import { newMemoryData, type MemoryData } from './memory-documents.ts';
import { newSessionMemory, type SessionMemory } from '../packages/testing/src/fake-sessions.ts';
import type { ToolLedger } from './company.ts';
import { damageCheckpoint } from './damage-checkpoint.ts';
import { createFaultPlan, type Fault, type FaultKind, type FaultPlan, JUMPING, type Mode } from './faults.ts';
import { bootMember, type AgentRuntime } from './process.ts';
import { createSimQueue, type SimQueue } from './queue.ts';
import { below, between, pick, type Random, randomOf } from './random.ts';
import { createTaskWatch } from './task-watch.ts';
import { createScheduler, type Scheduler, STEP_MS } from './scheduler.ts';

/**
 * Two or three processes over shared documents and one shared queue, and their faults.
 * W1  A slot always has a process or one that is booting: a dead process is replaced.
 * W2  Faults strike at numbered operations, so a list of faults replays a schedule.
 */
export interface World {
  readonly seed: number;
  readonly mode: Mode;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly plan: FaultPlan;
  readonly queue: SimQueue;
  readonly data: MemoryData;
  readonly tasks: ReturnType<typeof createTaskWatch>;
  readonly ledger: ToolLedger;
  /** By slot: what a session-stateful provider keeps on that machine. */
  readonly memories: readonly SessionMemory[];
  readonly limits: Pick<
    EngineLimits,
    | 'leaseMs'
    | 'sweepMs'
    | 'maxAttempts'
    | 'maxHops'
    | 'maxSteps'
    | 'maxDepth'
    | 'taskMs'
    | 'questionMs'
    | 'approvalMs'
    | 'idleMs'
  >;
  readonly members: (AgentRuntime | null)[];
  /** Every request to a model, in order. */
  readonly asked: { process: string; turn: string }[];
  /** Actors that began with a checkpoint, as `<conversation>:<agent>`. */
  readonly restored: Set<string>;
  /** Tasks reported to people as cancelled, and the number of model requests by then. */
  readonly cancelledTasks: { task: string; after: number }[];
  readonly figures: Record<Figure, number>;
  /** Warnings that no fault explains. */
  readonly surprises: string[];
  /** Mean time until a stalled job is noticed, ms. */
  readonly stallMs: number;
  /** The largest clock error so far, ms. */
  farthestSkew(): number;
  isCalm: () => boolean;
  /** Applies the fault that is due at this operation; the caller applies what concerns the operation itself. */
  faultAt(member: AgentRuntime, label: string, mayFail: boolean): FaultKind | null;
  kill(member: AgentRuntime): void;
  announce(from: AgentRuntime, notice: Notice): void;
  warned(name: string, error: unknown, where: string): void;
  /** A random live process; null while all are down. */
  anyone(): AgentRuntime | null;
  /** Ends the faults, wakes paused processes and restarts dead ones. */
  calm(): void;
}

export type Figure =
  | 'turns'
  | 'crashes'
  | 'ambiguous'
  | 'failed'
  | 'stalls'
  | 'queueLosses'
  | 'nextLosses'
  | 'pauses'
  | 'jumps'
  | 'posts'
  | 'cancels'
  | 'joins'
  | 'tasks'
  | 'decisions'
  | 'expired'
  | 'steered'
  | 'calls'
  | 'lost'
  | 'poisoned'
  | 'compacted'
  | 'restored'
  | 'damages'
  | 'sessionRequests'
  | 'steps';

const FIGURES: readonly Figure[] = [
  'turns',
  'crashes',
  'ambiguous',
  'failed',
  'stalls',
  'queueLosses',
  'nextLosses',
  'pauses',
  'jumps',
  'posts',
  'cancels',
  'joins',
  'tasks',
  'decisions',
  'expired',
  'steered',
  'calls',
  'lost',
  'poisoned',
  'compacted',
  'restored',
  'damages',
  'sessionRequests',
  'steps',
];

export const LEASE_MS = 6_000;
export const SWEEP_MS = 6_000;
/** A task ends by itself after this time, which is usually longer than the faults of a schedule. */
export const TASK_MS = 20_000;
const NEVER_MS = 365 * 24 * 3_600_000;
const PAUSE_STEPS = { from: 50, to: 550 };

export function noFigures(): Record<Figure, number> {
  return Object.fromEntries(FIGURES.map((name) => [name, 0])) as Record<Figure, number>;
}

export interface WorldOptions {
  seed: number;
  mode: Mode;
  replay?: readonly Fault[] | undefined;
  plainDedup?: boolean | undefined;
  onStep?: ((line: string) => void) | undefined;
}

declare global {
  /** For the mutant with a counter: one counter document per log. */
  var simCounters: Map<string, number> | undefined;
}

export function openWorld({ seed, mode, replay, plainDedup = false, onStep }: WorldOptions): World {
  globalThis.simCounters = new Map();
  const random = randomOf(seed, mode);
  const scheduler = createScheduler(random, onStep);
  const jumps = mode === 'full' && random() < JUMPING;
  const plan = createFaultPlan(randomOf(seed, `${mode} faults`), { mode, jumps, replay });
  const figures = noFigures();
  const slots = 2 + below(random, 2);
  const skews = Array.from({ length: slots }, () => Math.round(between(random, -1, 1) * (LEASE_MS / 8)));
  const incarnations = skews.map(() => 0);
  // In light mode some are so long that a holder notices its lost lease before the queue does.
  const stallMs = LEASE_MS * pick(random, mode === 'full' ? [0.2, 0.5, 1.2] : [0.2, 0.5, 1.2, 4, 4]);
  let farthest = LEASE_MS / 8;
  let calm = false;

  function boot(slot: number): void {
    const incarnation = (incarnations[slot] ?? 0) + 1;
    incarnations[slot] = incarnation;
    world.members[slot] = bootMember(world, slot, incarnation, skews[slot] ?? 0);
  }

  function kill(member: AgentRuntime): void {
    if (member.owner.state === 'dead') return;
    figures.crashes += 1;
    scheduler.kill(member.owner);
    member.die();
    world.queue.forsake(member);
    world.members[member.slot] = null;
    const wait = calm ? 0 : between(random, 100, LEASE_MS / 2);
    scheduler.sleep(null, 'boot', wait, () => boot(member.slot));
  }

  function pause(member: AgentRuntime, size: number): void {
    if (member.owner.state !== 'alive') return;
    figures.pauses += 1;
    scheduler.pause(member.owner);
    world.queue.forsake(member);
    const ms = (PAUSE_STEPS.from + size * (PAUSE_STEPS.to - PAUSE_STEPS.from)) * STEP_MS;
    scheduler.sleep(null, 'wake up', ms, () => wakeUp(member));
  }

  function wakeUp(member: AgentRuntime): void {
    if (member.owner.state !== 'paused') return;
    scheduler.resume(member.owner);
    world.queue.offer();
  }

  /** Leap seconds, bad NTP, a machine that slept: from now on the clock is wrong by more than a lease. */
  function jump(member: AgentRuntime, size: number): void {
    figures.jumps += 1;
    const ms = Math.round((size < 0.5 ? -1 : 1) * LEASE_MS * (1 + size));
    member.skew += ms;
    skews[member.slot] = member.skew;
    farthest = Math.max(farthest, Math.abs(member.skew));
  }

  /** True if the holder of the job also holds the lease: it looks again when it releases it. */
  function looksAgain({ tenant, conversation, agent }: ActorAddress, holder: AgentRuntime | null): boolean {
    const lease = world.data.actors.get(`${tenant}/${conversation}/${agent}`)?.owner;
    return holder !== null && (lease?.startsWith(`${holder.owner.name}:`) ?? false);
  }

  /** Returns whether it struck: a fault with nothing to break does not count. */
  function strike(fault: Fault, member: AgentRuntime, mayFail: boolean): boolean {
    switch (fault.kind) {
      case 'crash before':
      case 'crash after':
        return true;
      case 'ambiguous ack':
        if (mayFail) figures.ambiguous += 1;
        return mayFail;
      case 'failed before':
        if (mayFail) figures.failed += 1;
        return mayFail;
      case 'stall duplicate': {
        const stalled = world.queue.stall(random);
        if (stalled) figures.stalls += 1;
        return stalled;
      }
      case 'queue loss':
        figures.queueLosses += 1;
        world.queue.lose();
        return true;
      case 'next job loss': {
        const lost = world.queue.loseNext(random, mode === 'light' ? looksAgain : () => true);
        if (lost) figures.nextLosses += 1;
        return lost;
      }
      case 'pause':
        pause(member, fault.size);
        return true;
      case 'checkpoint damage': {
        const damaged = damageCheckpoint(world.data, fault.size);
        if (damaged) figures.damages += 1;
        return damaged;
      }
      case 'clock jump':
        jump(member, fault.size);
        return true;
    }
  }

  const data = newMemoryData();
  const world: World = {
    seed,
    mode,
    random,
    scheduler,
    plan,
    queue: createSimQueue({ scheduler, random, stallMs, plainDedup }),
    data,
    tasks: createTaskWatch(data),
    ledger: {},
    memories: skews.map(newSessionMemory),
    limits: {
      leaseMs: LEASE_MS,
      sweepMs: SWEEP_MS,
      // In some schedules turns are given up after a few attempts, in most never.
      maxAttempts: random() < 0.15 ? 3 : 1_000,
      maxHops: 3,
      // A refused handoff costs a step, and several may be refused by chance.
      maxSteps: 20,
      maxDepth: 2,
      // Without sweeps no deadline is noticed, so there is none.
      taskMs: mode === 'full' ? TASK_MS : NEVER_MS,
      questionMs: mode === 'full' ? TASK_MS : NEVER_MS,
      approvalMs: mode === 'full' ? TASK_MS : NEVER_MS,
      idleMs: 4 * LEASE_MS,
    },
    members: [],
    asked: [],
    restored: new Set(),
    cancelledTasks: [],
    figures,
    surprises: [],
    stallMs,
    farthestSkew: () => farthest,
    isCalm: () => calm,
    faultAt(member, label, mayFail) {
      const fault = plan.next();
      if (!fault) return null;
      if (!strike(fault, member, mayFail)) {
        plan.struck.pop();
        return null;
      }
      fault.place = `${member.owner.name} ${label} at ${Math.round(scheduler.now())} ms`;
      return fault.kind;
    },
    kill,
    announce(from, notice) {
      for (const member of world.members) {
        if (!member || member === from || random() < 0.2) continue;
        scheduler.add(member.owner, 'notice', () => member.hear(notice));
      }
    },
    warned(name, error, where) {
      if (error instanceof TroupeError && error.code !== 'internal') return;
      world.surprises.push(`${name} ${where}: ${error instanceof Error ? (error.stack ?? error) : error}`);
    },
    anyone() {
      const up = world.members.filter((member) => member !== null);
      return up.length > 0 ? pick(random, up) : null;
    },
    calm() {
      calm = true;
      plan.stop();
      scheduler.hurry();
      for (const member of world.members) if (member) wakeUp(member);
    },
  };
  for (let slot = 0; slot < slots; slot++) boot(slot);
  return world;
}
