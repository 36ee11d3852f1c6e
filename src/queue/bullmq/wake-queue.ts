import { type Job, Queue } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { ActorAddress, addressKey, type TenantId } from '../../events/index.ts';
import { CONNECT_TIMEOUT_MS, isReady, readyWithin, type RedisClient } from '../redis/connect-redis.ts';
import type { QueueDepth, WaitingWake } from '../router.ts';
import { createFairLanes, type FairLanes } from './fair-lanes.ts';
import { EVENTS_KEPT } from './guard-scripts.ts';
import { StrayWakes } from './stray-wakes.ts';

export const QUEUE_NAME = 'wake';
export const WAKE = 'wake';
export const LATER = 'later';

/** BullMQ's scores of delayed jobs: the due time, shifted to make room for the order within one millisecond. */
const DELAYED_SCORE_FACTOR = 4_096;

export interface WakeQueueOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  strayAfterMs: number;
  mostWaiting: number;
  warn: (error: unknown, where: string) => void;
  /** Called with the error of each failed command. */
  suspect: (error: unknown) => void;
}

/**
 * Adds wakes. One BullMQ queue serves all actors; its prefix is in braces, so that a Redis Cluster keeps all its keys in
 * one slot.
 *  Q1  A `wake` is one job per actor. While it waits, more wakes of the actor merge into it; while it runs, they leave
 *      one more job behind it (`keepLastIfActive`). Plain deduplication would lose the last wake.
 *  Q2  A `later` is a separate job that adds a `wake` when it is due. It neither absorbs wakes nor hastens any.
 *  Q3  Jobs hold ids only, are never retried by BullMQ, and leave nothing in Redis when they are done.
 *  Q4  Calls fail at once while Redis is away. Only the very first connection is waited for, and briefly.
 */
export class WakeQueue {
  readonly #queue: Queue<unknown>;
  readonly #redis: RedisClient;
  readonly #clock: Clock;
  readonly #suspect: (error: unknown) => void;
  readonly #firstReady: Promise<boolean>;
  readonly #lanes: FairLanes;
  readonly #strays: StrayWakes;

  constructor({ redis, prefix, clock, strayAfterMs, mostWaiting, warn, suspect }: WakeQueueOptions) {
    this.#redis = redis;
    this.#clock = clock;
    this.#suspect = suspect;
    this.#queue = new Queue<unknown>(QUEUE_NAME, {
      connection: redis,
      prefix: bracedPrefix(prefix),
      // The version check is a command whose failure would make this queue unusable for good.
      skipVersionCheck: true,
      streams: { events: { maxLen: EVENTS_KEPT } },
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
    });
    // The connection itself reports that it is away, and commands report to their callers.
    this.#queue.on('error', () => {});
    this.#firstReady = readyWithin(redis, CONNECT_TIMEOUT_MS);
    this.#lanes = createFairLanes({
      redis,
      keyOf: (counted, group) => `${bracedPrefix(prefix)}:${QUEUE_NAME}-${counted}:${group}`,
      countWaiting: async () => (await this.#countJobs()).waiting,
      clock,
      mostWaiting,
    });
    this.#strays = new StrayWakes({
      queue: this.#queue,
      clock,
      afterMs: strayAfterMs,
      addWake: async (key, address) => void (await this.#addJob(key, address, 0)),
      warn,
    });
  }

  wake(address: ActorAddress, delayMs: number): Promise<void> {
    return this.reach(async () => {
      if (delayMs > 0) await this.#queue.add(LATER, idsOf(address), { delay: delayMs });
      else await this.#addWake(address);
    });
  }

  async #addWake(address: ActorAddress): Promise<void> {
    const key = addressKey(address);
    const lane = this.#lanes.enter(address, key);
    if (lane === null) return;
    const jobId = await this.#addJob(key, address, lane);
    if (jobId !== undefined) this.#strays.noteAdded(key, address, jobId);
  }

  async #addJob(key: string, address: ActorAddress, lane: number): Promise<string | undefined> {
    const job = await this.#queue.add(WAKE, idsOf(address), {
      deduplication: { id: key, keepLastIfActive: true },
      ...(lane > 0 ? { priority: lane } : {}),
    });
    return job.id;
  }

  /** Records that a worker took the wake of an actor, which therefore waits no longer. */
  noteTaken(address: ActorAddress, key: string): void {
    this.#lanes.leave(address, key);
  }

  /** Reports an error of a worker. If the worker lost a job, wakes may be merging into that job. */
  noteWorkerError(error: unknown): void {
    this.#suspect(error);
    this.#strays.suspect(error);
  }

  depth(): Promise<QueueDepth> {
    return this.reach(() => this.#countJobs());
  }

  async #countJobs(): Promise<QueueDepth> {
    const counts = await this.#queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed');
    return {
      waiting: (counts['waiting'] ?? 0) + (counts['prioritized'] ?? 0),
      active: counts['active'] ?? 0,
      delayed: counts['delayed'] ?? 0,
    };
  }

  backlog(tenant: TenantId): Promise<number> {
    return this.reach(() => this.#lanes.size(tenant));
  }

  /**
   * The actors whose wakes wait, the longest first. Per state of BullMQ, `limit` jobs are looked at: those that are served
   * next. So in a longer queue some are missing.
   */
  waiting(limit: number, tenant?: TenantId): Promise<WaitingWake[]> {
    return this.reach(async () => {
      const states = ['wait', 'prioritized', 'delayed'] as const;
      const lists = await Promise.all(
        states.map((state) => this.#queue.getJobs([state], 0, limit - 1, true)),
      );
      const found = new Map<string, WaitingWake>();
      for (const [index, jobs] of lists.entries())
        for (const job of jobs) {
          const address = job ? readAddress(job) : null;
          if (!address || job.name !== WAKE || (tenant !== undefined && address.tenant !== tenant)) continue;
          found.set(addressKey(address), {
            address,
            since: job.timestamp,
            isHeldBack: states[index] === 'delayed',
          });
        }
      return [...found.values()].toSorted((a, b) => a.since - b.since).slice(0, limit);
    });
  }

  /** Counts overdue wakes: waiting ones, and delayed ones that were due `graceMs` ago. */
  countOverdue(graceMs: number): Promise<number> {
    const due = (this.#clock.now() - graceMs) * DELAYED_SCORE_FACTOR;
    return this.reach(async () => {
      const counts = [this.#countJobs(), this.#redis.zcount(this.#queue.toKey('delayed'), 0, due)] as const;
      const [{ waiting }, late] = await Promise.all(counts);
      return waiting + late;
    });
  }

  /** Moves a waiting job to the front; has no effect on others. */
  moveToFront(jobId: string): Promise<void> {
    return this.reach(async () => {
      await this.#queue.getBackend().changePriority(jobId, 0, true);
    });
  }

  /** Removes jobs that cannot be decoded, which BullMQ would hand out for ever. Returns their number. */
  async dropUnreadable(): Promise<number> {
    const [redis, queue, active] = [this.#redis, this.#queue, this.#queue.toKey('active')];
    let dropped = 0;
    for (const id of await redis.lrange(active, 0, -1)) {
      try {
        await queue.getJob(id);
      } catch (error) {
        if (!isDecodeError(error)) throw error;
        await redis.lrem(active, -1, id);
        await redis.unlink(queue.toKey(id), `${queue.toKey(id)}:lock`);
        dropped += 1;
      }
    }
    return dropped;
  }

  /** Runs commands; a failure becomes `queue_unavailable`. */
  async reach<T>(run: () => Promise<T>): Promise<T> {
    const redis = this.#redis;
    try {
      if (redis.status !== 'ready' && !(await this.#firstReady) && !isReady(redis)) {
        throw new Error(`the connection is ${redis.status}`);
      }
      return await run();
    } catch (error) {
      if (error instanceof TroupeError) throw error;
      this.#suspect(error);
      const message = `the queue in Redis does not answer: ${error instanceof Error ? error.message : String(error)}`;
      throw new TroupeError('queue_unavailable', message, {}, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

export function bracedPrefix(prefix: string): string {
  return `{${prefix}}`;
}

/** Whether decoding failed: invalid JSON, or a value of the wrong type. */
export function isDecodeError(error: unknown): boolean {
  return error instanceof SyntaxError || error instanceof TypeError;
}

/** Contents of jobs are not trusted. Null: the job is not a wake of this troupe. */
export function readAddress(job: Job<unknown>): ActorAddress | null {
  if (job.name !== WAKE && job.name !== LATER) return null;
  const parsed = ActorAddress.safeParse(job.data);
  return parsed.success ? parsed.data : null;
}

/** Drops other fields of the caller's object. */
function idsOf({ tenant, conversation, agent }: ActorAddress): ActorAddress {
  return { tenant, conversation, agent };
}
