import { addressKey, type ActorAddress } from '../src/events/index.ts';
import type { WakeHandler, WakeOutcome } from '../src/queue/router.ts';
import { below, between, pick, type Random } from './random.ts';
import type { Scheduler, Sleeper } from './scheduler.ts';
import type { AgentRuntime } from './process.ts';

/**
 * One BullMQ queue as its documentation and our measurements describe it: one job per actor by a dedup id with
 * `keepLastIfActive`, delays for busy actors, and jobs that are handed out again when their worker died, slept or
 * lost its lock.
 * Q1  At most one job of an actor is waiting, delayed or active, except for holders that have lost their lock.
 * Q2  An add while the job is active is kept as the next job; while it waits or is delayed, it is dropped.
 * Q3  A holder that has lost the lock can neither finish nor delay the job.
 */
export interface SimQueue {
  add(address: ActorAddress, delayMs: number): void;
  /** From now on a worker of this process takes jobs. */
  serve(member: AgentRuntime, handler: WakeHandler, concurrency: number): void;
  /** The locks of a dead or sleeping process expire. */
  forsake(member: AgentRuntime): void;
  /** Offers waiting jobs again, for example after a process woke up. */
  offer(): void;
  /** Hands a job out a second time while its holder works. False if none is active. */
  stall(random: Random): boolean;
  /** Drops all content. */
  lose(): void;
  /** Drops a kept next job that passes `may`, with the holder of its current job. False if there is none. */
  loseNext(random: Random, may: (address: ActorAddress, holder: AgentRuntime | null) => boolean): boolean;
  isEmpty(): boolean;
}

interface Job {
  address: ActorAddress;
  key: string;
  state: 'waiting' | 'delayed' | 'active';
  /** Raised when the job is handed out and when its lock is lost. */
  lock: number;
  holder: AgentRuntime | null;
  sleeper: Sleeper | null;
}

interface Service {
  member: AgentRuntime;
  handler: WakeHandler;
  free: number;
  /** Requests for a job that are under way. */
  asking: number;
}

export interface SimQueueOptions {
  scheduler: Scheduler;
  random: Random;
  /** Mean time until a stalled job is noticed, ms. */
  stallMs: number;
  /** Mutant: an add while the job is active is dropped. */
  plainDedup: boolean;
}

export function createSimQueue({ scheduler, random, stallMs, plainDedup }: SimQueueOptions): SimQueue {
  let jobs = new Map<string, Job>();
  let kept = new Map<string, ActorAddress>();
  /** Delayed wakes: separate jobs. */
  const laters = new Set<Sleeper>();
  let waiting: Job[] = [];
  let services: Service[] = [];

  function offer(): void {
    services = services.filter(({ member }) => member.owner.state !== 'dead');
    // A paused process takes no job, even if it asked before the pause.
    const awake = services.filter(({ member }) => member.owner.state === 'alive');
    let asking = awake.reduce((sum, service) => sum + service.asking, 0);
    const first = below(random, awake.length);
    for (let turn = 0; turn < awake.length && asking < waiting.length; turn++) {
      const service = awake[(first + turn) % awake.length] as Service;
      if (service.free <= service.asking) continue;
      service.asking += 1;
      asking += 1;
      scheduler.add(service.member.owner, 'take', () => take(service));
    }
  }

  function take(service: Service): void {
    service.asking -= 1;
    const job = waiting.shift();
    if (!job) return;
    if (waiting.length > 0) offer();
    job.state = 'active';
    job.lock += 1;
    job.holder = service.member;
    service.free -= 1;
    scheduler.note(`${job.key} #${job.lock} is handed to ${service.member.owner.name}`);
    void work(service, job, job.lock);
  }

  async function work(service: Service, job: Job, lock: number): Promise<void> {
    let outcome: WakeOutcome = { kind: 'done' };
    try {
      outcome = await service.handler({ ...job.address }, () => {});
    } catch (error) {
      service.member.warn(error, `wake of @${job.address.agent}`);
    }
    await service.member.act(`finish ${outcome.kind}`, () => finish(job, lock, outcome));
    service.free += 1;
    offer();
  }

  function finish(job: Job, lock: number, outcome: WakeOutcome): void {
    const isHis = job.lock === lock && jobs.get(job.key) === job;
    scheduler.note(`${job.key} #${lock} ends as ${outcome.kind}${isHis ? '' : ', its lock is gone'}`);
    if (!isHis) return;
    job.holder = null;
    if (outcome.kind === 'busy') return delay(job, outcome.retryInMs);
    jobs.delete(job.key);
    const next = kept.get(job.key);
    kept.delete(job.key);
    if (next) create(next);
  }

  function delay(job: Job, ms: number): void {
    job.state = 'delayed';
    job.lock += 1;
    job.sleeper = scheduler.sleep(null, 'delayed job', ms, () => enqueue(job));
  }

  function enqueue(job: Job): void {
    if (jobs.get(job.key) !== job) return;
    job.state = 'waiting';
    job.holder = null;
    waiting.push(job);
    offer();
  }

  function create(address: ActorAddress): void {
    const key = addressKey(address);
    const job: Job = { address, key, state: 'waiting', lock: 0, holder: null, sleeper: null };
    jobs.set(key, job);
    enqueue(job);
  }

  function wake(address: ActorAddress): void {
    const known = jobs.get(addressKey(address));
    scheduler.note(`wake of ${addressKey(address)}: its job is ${known?.state ?? 'none'}`);
    if (!known) create(address);
    else if (known.state === 'active' && !plainDedup) kept.set(known.key, address);
  }

  /** The lock of an active job is lost: the job is handed out again, whatever its holder does. */
  function release(job: Job): void {
    job.lock += 1;
    enqueue(job);
  }

  return {
    add(address, delayMs) {
      if (delayMs <= 0) return wake(address);
      const later = scheduler.sleep(null, 'later job', delayMs, () => {
        laters.delete(later);
        wake(address);
      });
      laters.add(later);
    },
    serve(member, handler, concurrency) {
      services.push({ member, handler, free: concurrency, asking: 0 });
      offer();
    },
    forsake(member) {
      for (const job of jobs.values()) {
        if (job.state !== 'active' || job.holder !== member) continue;
        const { lock } = job;
        // BullMQ notices a stalled job at its second check.
        scheduler.sleep(null, 'stalled job', between(random, stallMs, 2 * stallMs), () => {
          if (job.state === 'active' && job.lock === lock && member.owner.state !== 'alive') release(job);
        });
      }
      // Other processes may take the jobs that it had asked for.
      offer();
    },
    offer,
    stall(random) {
      const active = [...jobs.values()].filter(({ state }) => state === 'active');
      if (active.length === 0) return false;
      release(pick(random, active));
      return true;
    },
    lose() {
      for (const { sleeper } of jobs.values()) if (sleeper) scheduler.cancel(sleeper);
      for (const later of laters) scheduler.cancel(later);
      laters.clear();
      jobs = new Map();
      kept = new Map();
      waiting = [];
    },
    loseNext(random, may) {
      const found = [...kept].filter(([key, address]) => may(address, jobs.get(key)?.holder ?? null));
      return found.length > 0 && kept.delete(pick(random, found)[0]);
    },
    isEmpty: () => jobs.size + laters.size === 0,
  };
}
