import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { type ActorAddress, addressKey, type TenantId } from '../../events/index.ts';
import { CONNECT_TIMEOUT_MS, isReady, readyWithin } from '../redis/connect-redis.ts';
import type { QueueDepth } from '../router.ts';
import { EVENTS_KEPT } from './guard-scripts.ts';
import { createFairLanes } from './fair-lanes.ts';

/**
 * The side of the queue that adds. One BullMQ queue `wake` for all actors; its name is in braces, so that a Redis
 * Cluster keeps all its keys in one slot.
 *  Q1  A `wake` is one job per actor. While it waits, more wakes of the actor merge into it; while it runs, they leave
 *      one more behind it (`keepLastIfActive`). Plain deduplication would lose the last wake.
 *  Q2  A `later` is a job of its own that makes a `wake` when it is due. It neither absorbs wakes nor hastens any.
 *  Q3  Jobs carry ids only, are never retried by BullMQ, and leave nothing behind when they are done.
 *  Q4  Nothing here waits for a Redis that is away, but for the very first connection, and for that only shortly.
 */
export const QUEUE_NAME = 'wake';
export const WAKE = 'wake';
export const LATER = 'later';

/** BullMQ's scores of delayed jobs: the due time, shifted to make room for the order within one millisecond. */
const DELAYED_SCORE_FACTOR = 4_096;

export interface WakeQueueOptions {
  redis: Redis;
  prefix: string;
  clock: Clock;
  strayAfterMs: number;
  /** Actors of one tenant that wait at most: wakes of more are left out (R8). */
  mostWaiting: number;
  warn: (error: unknown, where: string) => void;
  /** Called with the error of each failed command. */
  suspect: (error: unknown) => void;
}

export function openWakeQueue(options: WakeQueueOptions) {
  const { redis, prefix, clock, strayAfterMs, mostWaiting, warn, suspect } = options;
  const queue = new Queue<unknown>(QUEUE_NAME, {
    connection: redis,
    prefix: bracedPrefix(prefix),
    // Asking for the version is a command whose failure would leave this queue unusable for good.
    skipVersionCheck: true,
    streams: { events: { maxLen: EVENTS_KEPT } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
  });
  // The connection tells by itself when it is away, and commands tell their callers.
  queue.on('error', () => {});
  const firstReady = readyWithin(redis, CONNECT_TIMEOUT_MS);
  const backlog = createFairLanes({
    redis,
    keyOf: (counted, group) => `${bracedPrefix(prefix)}:${QUEUE_NAME}-${counted}:${group}`,
    countWaiting: async () => (await depth()).waiting,
    clock,
    mostWaiting,
  });
  const strays = createStrayWatch({ clock, afterMs: strayAfterMs, look: lookAfter });

  async function reached<T>(act: () => Promise<T>): Promise<T> {
    try {
      if (redis.status !== 'ready' && !(await firstReady) && !isReady(redis)) {
        throw new Error(`the connection is ${redis.status}`);
      }
      return await act();
    } catch (error) {
      if (error instanceof TroupeError) throw error;
      suspect(error);
      const why = error instanceof Error ? error.message : String(error);
      throw new TroupeError(
        'queue_unavailable',
        `the queue in Redis does not answer: ${why}`,
        {},
        { cause: error },
      );
    }
  }

  async function addWake(address: ActorAddress): Promise<void> {
    const key = addressKey(address);
    const lane = backlog.enter(address, key);
    if (lane === null) return;
    const job = await queue.add(WAKE, idsOf(address), {
      deduplication: { id: key, keepLastIfActive: true },
      ...(lane > 0 ? { priority: lane } : {}),
    });
    if (job.id !== undefined) strays.added(key, job.id);
  }

  async function addLater(address: ActorAddress, delayMs: number): Promise<void> {
    await queue.add(LATER, idsOf(address), { delay: delayMs });
  }

  async function lookAfter(key: string, jobId: string, waited: boolean): Promise<void> {
    try {
      const state = await queue.getJobState(jobId);
      if (state === 'prioritized') {
        // After a long wait behind others it queues with the plain ones.
        if (waited) await queue.getBackend().changePriority(jobId, 0);
      } else if (state === 'unknown' || state === 'completed' || state === 'failed') {
        warn(`the wake ${jobId} of ${key} was in no list and swallowed all later ones: removed`, 'queue');
        await queue.getBackend().removeDeduplicationKey(key, jobId);
        await queue.remove(jobId);
        const [tenant, conversation, agent] = key.split('/');
        await queue.add(
          WAKE,
          { tenant, conversation, agent },
          { deduplication: { id: key, keepLastIfActive: true } },
        );
      }
    } catch (error) {
      warn(error, 'queue');
    }
  }

  async function depth(): Promise<QueueDepth> {
    const counts = await queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed');
    return {
      waiting: (counts['waiting'] ?? 0) + (counts['prioritized'] ?? 0),
      active: counts['active'] ?? 0,
      delayed: counts['delayed'] ?? 0,
    };
  }

  /** Counts overdue wakes: waiting ones, and delayed ones that were due `graceMs` ago. */
  async function overdue(graceMs: number): Promise<number> {
    const due = (clock.now() - graceMs) * DELAYED_SCORE_FACTOR;
    const [{ waiting }, delayed] = await Promise.all([depth(), redis.zcount(queue.toKey('delayed'), 0, due)]);
    return waiting + delayed;
  }

  /** Removes jobs that cannot even be decoded: BullMQ would hand them out for ever. Returns how many. */
  async function dropUnreadable(): Promise<number> {
    let dropped = 0;
    for (const id of await redis.lrange(queue.toKey('active'), 0, -1)) {
      try {
        await queue.getJob(id);
      } catch (error) {
        if (!isDecodeError(error)) throw error;
        await redis.lrem(queue.toKey('active'), -1, id);
        await redis.unlink(queue.toKey(id), `${queue.toKey(id)}:lock`);
        dropped += 1;
      }
    }
    return dropped;
  }

  return {
    wake: (address: ActorAddress, delayMs: number): Promise<void> =>
      reached(() => (delayMs > 0 ? addLater(address, delayMs) : addWake(address))),
    taken: (address: ActorAddress, key: string): void => backlog.leave(address, key),
    depth: () => reached(depth),
    backlog: (tenant: TenantId): Promise<number> => reached(() => backlog.size(tenant)),
    overdue: (graceMs: number) => reached(() => overdue(graceMs)),
    dropUnreadable,
    /** A worker has failed: if it lost a job, wakes may be merging into that job. */
    suspectLost: strays.suspect,
    reached,
    /** Moves a waiting job to the front; has no effect on others. */
    toFront: (jobId: string): Promise<void> =>
      reached(async () => {
        await queue.getBackend().changePriority(jobId, 0, true);
      }),
    close: async (): Promise<void> => queue.close(),
  };
}

export type WakeQueue = ReturnType<typeof openWakeQueue>;

export function bracedPrefix(prefix: string): string {
  return `{${prefix}}`;
}

/** Whether decoding failed: invalid JSON, or a value of the wrong kind. */
export function isDecodeError(error: unknown): boolean {
  return error instanceof SyntaxError || error instanceof TypeError;
}

/** Drops other fields of the caller's object. */
function idsOf({ tenant, conversation, agent }: ActorAddress): ActorAddress {
  return { tenant, conversation, agent };
}

/**
 * Finds wakes that swallow others and are never served themselves. BullMQ merges a wake into the job that its
 * deduplication key names. If that job is in no list any more (a list lost, a job half removed), every later wake of
 * the actor would vanish in it for ever. BullMQ itself heals the case of a job that is gone altogether.
 *
 * Owns the job of each recently woken actor, and since when wakes merge into it. After `afterMs` the job is suspect, and
 * `look` finds out what it is. At most one look runs at a time, and one starts every `LOOK_EVERY_MS`: a job that merely
 * waits long is looked at too. After `suspect` a job is suspect after `SUSPECT_AFTER_MS`, for `SUSPICION_MS`.
 */
interface StrayDeps {
  clock: Clock;
  afterMs: number;
  /** Finds out about a suspect job and mends what is wrong. `waited`: wakes have merged into it for `afterMs`. Never rejects. */
  look: (key: string, jobId: string, waited: boolean) => Promise<void>;
}

const LOOK_EVERY_MS = 100;
const MAX_REMEMBERED = 10_000;
const SUSPECT_AFTER_MS = 1_000;
const SUSPICION_MS = 60_000;
/** BullMQ's words for a job that its worker held and that has lost its list, its lock or its key. */
const LOST_JOB = /is not in the active state|Missing (?:lock|key) for job/;

function createStrayWatch({ clock, afterMs, look }: StrayDeps) {
  const merged = new Map<string, { jobId: string; since: number }>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let suspectUntil = Number.NEGATIVE_INFINITY;
  let looking = false;

  function suspect(error: unknown): void {
    if (error instanceof Error && LOST_JOB.test(error.message))
      suspectUntil = clock.monotonic() + SUSPICION_MS;
  }

  function added(key: string, jobId: string): void {
    const now = clock.monotonic();
    const last = merged.get(key);
    if (last?.jobId !== jobId) return remember(key, jobId, now);
    const waitedMs = now - last.since;
    const lookAfterMs = now < suspectUntil ? Math.min(SUSPECT_AFTER_MS, afterMs) : afterMs;
    if (waitedMs < lookAfterMs || looking || now - lookedAt < LOOK_EVERY_MS) return;
    const waited = waitedMs >= afterMs;
    looking = true;
    lookedAt = now;
    if (waited) last.since = now;
    void look(key, jobId, waited).finally(() => (looking = false));
  }

  function remember(key: string, jobId: string, since: number): void {
    merged.delete(key);
    merged.set(key, { jobId, since });
    if (merged.size <= MAX_REMEMBERED) return;
    const [oldest] = merged.keys();
    if (oldest !== undefined) merged.delete(oldest);
  }

  return { added, suspect };
}
