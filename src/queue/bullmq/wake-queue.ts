import { type Job, Queue } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { ActorAddress, addressKey, type TenantId } from '../../events/index.ts';
import {
  CONNECT_TIMEOUT_MS,
  isReady,
  readyWithin,
  type RedisClient,
  luaScript,
} from '../redis/connect-redis.ts';
import type { QueueDepth, WaitingWake } from '../router.ts';
import { EVENTS_KEPT } from './guard-scripts.ts';
import { familyOf } from '../fair-share.ts';

export const QUEUE_NAME = 'wake';
const WAKE = 'wake';
export const LATER = 'later';

/** BullMQ's scores of delayed jobs: the due time, shifted to make room for the order within one millisecond. */
const DELAYED_SCORE_FACTOR = 4_096;

interface WakeQueueOptions {
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
 *  Q1  A `wake` is one job per actor. While the job waits, more wakes of the actor merge into it; while it runs, they add
 *      one more job behind it (`keepLastIfActive`). Plain deduplication would lose the last wake.
 *  Q2  A `later` is a separate job that adds a `wake` when it is due. It neither absorbs wakes nor brings any forward.
 *  Q3  Jobs hold ids only, are never retried by BullMQ, and leave nothing in Redis when they are done.
 *  Q4  Calls fail at once while Redis is unavailable. They wait, briefly, only for the very first connection.
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
      // The version check is a command; if it failed, this queue could never be used.
      skipVersionCheck: true,
      streams: { events: { maxLen: EVENTS_KEPT } },
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
    });
    // The connection itself reports that Redis is unavailable, and commands report to their callers.
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

  /** Records that a worker took the wake of an actor, so that it no longer counts as waiting. */
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
   * The actors whose wakes wait, the longest first. Examines `limit` jobs per state of BullMQ, those served next, so in
   * a longer queue some are missing.
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

/**
 * Chooses the lane of a wake, so that tenants take turns, and so do the conversations of a tenant with their threads.
 * Waiting actors are counted three times:
 *  F1  By conversation. An actor far behind in its conversation gets a late lane for that reason alone.
 *  F2  By tenant, but only actors that are not far behind in their conversation. So one long conversation does not delay
 *      the others, and a tenant with many conversations is late in proportion.
 *  F3  By tenant, all of them: the count by which new messages are refused and wakes are dropped (R8).
 */
interface FairLanes {
  /** Counts an actor as waiting and returns its lane; null if its tenant has too many waiting actors. */
  enter(address: ActorAddress, member: string): number | null;
  leave(address: ActorAddress, member: string): void;
  size(tenant: TenantId): Promise<number>;
}

interface FairLanesOptions {
  redis: RedisClient;
  /** Redis key of a set of actors, by what it counts. */
  keyOf: (counted: 'backlog' | 'front' | 'family', group: string) => string;
  /** Number of waiting wakes of all tenants. */
  countWaiting: () => Promise<number>;
  clock: Clock;
  mostWaiting: number;
}

const KEPT_S = 86_400;

/** KEYS sets. ARGV: a member of all. Here and below, a key of another type must not keep the others from being changed. */
const ADD = luaScript(`
for _, key in ipairs(KEYS) do
  redis.pcall('SADD', key, ARGV[1])
  redis.pcall('EXPIRE', key, ${KEPT_S})
end
`);

/** KEYS sets. ARGV: a member of each. */
const REMOVE = luaScript(`
for at, key in ipairs(KEYS) do
  redis.pcall('SREM', key, ARGV[at])
end
`);

/** Sets of waiting actors. Changes are batched: one command for a wake, and one for all removals in a turn of the event loop. */
class WaitingSets {
  readonly #redis: RedisClient;
  #left: { key: string; member: string }[] = [];

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  add(keys: readonly string[], member: string): void {
    ADD.run(this.#redis, [...keys], [member]).catch(ignore);
  }

  remove(keys: readonly string[], member: string): void {
    if (this.#left.length === 0) setImmediate(() => this.#sendLeft());
    for (const key of keys) this.#left.push({ key, member });
  }

  #sendLeft(): void {
    const left = this.#left;
    this.#left = [];
    REMOVE.run(
      this.#redis,
      left.map(({ key }) => key),
      left.map(({ member }) => member),
    ).catch(ignore);
  }
}

function createFairLanes({ keyOf, mostWaiting, ...deps }: FairLanesOptions): FairLanes {
  const open = (counted: Parameters<typeof keyOf>[0]) =>
    new GroupBacklog({ ...deps, keyOf: (group) => keyOf(counted, group) });
  const sets = new WaitingSets(deps.redis);
  const all = open('backlog');
  const fronts = open('front');
  const families = open('family');
  const nameOf = ({ tenant, conversation }: ActorAddress) => `${tenant}/${familyOf(conversation)}`;

  return {
    enter(address, member) {
      const { tenant } = address;
      if (all.estimate(tenant) >= mostWaiting) return null;
      const family = nameOf(address);
      const keys = [keyOf('backlog', tenant), keyOf('family', family)];
      all.enter(tenant);
      const own = families.enter(family);
      if (own === 0) keys.push(keyOf('front', tenant));
      sets.add(keys, member);
      return own === 0 ? fronts.enter(tenant) : Math.max(own, fronts.laneOf(tenant));
    },
    leave(address, member) {
      const { tenant } = address;
      sets.remove(
        [keyOf('backlog', tenant), keyOf('front', tenant), keyOf('family', nameOf(address))],
        member,
      );
    },
    size: (tenant) => all.size(tenant),
  };
}

const PLAIN_WAKES = 64;
const MAX_LANE = 10_000;
/** Sizes older than this are ignored. */
const FRESH_MS = 5_000;
/** The size of a group in the plain queue is read once per this many wakes. */
const READ_EVERY = 16;
const REPAIR_EVERY_MS = 1_000;
const MAX_GROUPS_KNOWN = 10_000;

interface Group {
  /** Size of the set when it was last read. */
  size: number;
  readAt: number;
  /** Wakes added here since then. */
  added: number;
  isReading: boolean;
  lane: number;
}

type GroupBacklogDeps = Omit<FairLanesOptions, 'keyOf' | 'mostWaiting'> & {
  keyOf: (group: string) => string;
};

/**
 * Fairness between groups: tenants, or the conversations of one. A group with few waiting wakes uses the plain queue,
 * first in, first out. Further wakes of a group with a large backlog go to lanes behind it: the larger the backlog, the
 * later the lane.
 *
 * Owns: the last known sizes of sets of waiting actors, one per group, which `WaitingSets` changes. A set is written in the same
 * socket write as the wake, so nothing waits for it.
 *  T1  Adding and removing are idempotent per actor, so merged wakes count once. A process that dies in between leaves at
 *      most its own actors too many.
 *  T2  A set far larger than the whole queue is deleted (`#repair`). This is checked at most once a second, and only
 *      while the group is behind.
 *  T3  While a group is behind, its lane never goes back, so its later wakes do not overtake earlier ones.
 *  T4  A set expires a day after the last addition, so a dead process leaves nothing for ever.
 */
class GroupBacklog {
  readonly #deps: GroupBacklogDeps;
  readonly #groups = new Map<string, Group>();
  #repairedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: GroupBacklogDeps) {
    this.#deps = deps;
  }

  /** Counts an actor as waiting and returns the lane of its wake; 0 is the plain queue. */
  enter(name: string): number {
    const group = this.#find(name);
    if (!this.#isFresh(group)) group.size = 0;
    group.added += 1;
    const behind = group.size + group.added - PLAIN_WAKES;
    group.lane = behind <= 0 ? 0 : Math.min(Math.max(group.lane, Math.ceil(behind / PLAIN_WAKES)), MAX_LANE);
    this.#refresh(name, group, group.added >= READ_EVERY);
    return group.lane;
  }

  /** An estimate from the last known size. Refreshes that size, because a refused caller asks again. */
  estimate(name: string): number {
    const group = this.#groups.get(name);
    if (!group || !this.#isFresh(group)) return 0;
    this.#refresh(name, group, false);
    return group.size + group.added;
  }

  laneOf(name: string): number {
    const group = this.#groups.get(name);
    return group && this.#isFresh(group) ? group.lane : 0;
  }

  size(name: string): Promise<number> {
    return this.#deps.redis.scard(this.#deps.keyOf(name));
  }

  #isFresh(group: Group): boolean {
    return this.#deps.clock.monotonic() - group.readAt <= FRESH_MS;
  }

  #refresh(name: string, group: Group, isDue: boolean): void {
    if (!group.isReading && (group.lane > 0 || isDue)) void this.#readSize(name, group);
    if (group.lane > 0) void this.#repair(name, group);
  }

  async #readSize(name: string, group: Group): Promise<void> {
    group.isReading = true;
    const { added } = group;
    try {
      group.size = await this.size(name);
      group.added -= added;
      group.readAt = this.#deps.clock.monotonic();
    } catch (error) {
      ignore(error);
    } finally {
      group.isReading = false;
    }
  }

  async #repair(name: string, group: Group): Promise<void> {
    const { redis, keyOf, countWaiting, clock } = this.#deps;
    const now = clock.monotonic();
    if (now - this.#repairedAt < REPAIR_EVERY_MS) return;
    this.#repairedAt = now;
    try {
      const [waiting, size] = await Promise.all([countWaiting(), this.size(name)]);
      if (size <= PLAIN_WAKES || size <= 2 * waiting) return;
      await redis.unlink(keyOf(name));
      group.size = 0;
      group.lane = 0;
    } catch (error) {
      ignore(error);
    }
  }

  #find(name: string): Group {
    const found = this.#groups.get(name);
    if (found) return found;
    if (this.#groups.size >= MAX_GROUPS_KNOWN) this.#groups.clear();
    const group = { size: 0, readAt: Number.NEGATIVE_INFINITY, added: 0, isReading: false, lane: 0 };
    this.#groups.set(name, group);
    return group;
  }
}

/** A failed command only makes the estimate inexact; the wake itself reports that Redis is unavailable. */
function ignore(_error: unknown): void {}

interface StrayWakesDeps {
  queue: Queue<unknown>;
  clock: Clock;
  afterMs: number;
  addWake: (key: string, address: ActorAddress) => Promise<void>;
  warn: (error: unknown, where: string) => void;
}

const LOOK_EVERY_MS = 100;
const MAX_KNOWN = 10_000;
const SUSPECT_AFTER_MS = 1_000;
const SUSPICION_MS = 60_000;
/** BullMQ's errors for a job that a worker held and that has lost its list, its lock or its key. */
const LOST_JOB = /is not in the active state|Missing (?:lock|key) for job/;

/**
 * Finds jobs that swallow wakes and are never served. BullMQ merges a wake into the job that its deduplication key names.
 * If that job is in no list any more (a lost list, a half removed job), every later wake of the actor would vanish in it.
 * BullMQ itself recovers when the job is gone altogether.
 *
 * Owns the current job of each recently woken actor, and since when wakes merge into it. After `afterMs` the job is
 * inspected, even if it merely waits long; for `SUSPICION_MS` after a suspicious error already after `SUSPECT_AFTER_MS`.
 * One inspection runs at a time, and one starts every `LOOK_EVERY_MS` at most.
 */
class StrayWakes {
  readonly #deps: StrayWakesDeps;
  readonly #jobs = new Map<string, { jobId: string; since: number }>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #suspectUntil = Number.NEGATIVE_INFINITY;
  #isLooking = false;

  constructor(deps: StrayWakesDeps) {
    this.#deps = deps;
  }

  suspect(error: unknown): void {
    if (!(error instanceof Error && LOST_JOB.test(error.message))) return;
    this.#suspectUntil = this.#deps.clock.monotonic() + SUSPICION_MS;
  }

  /** Records that a wake was added as, or merged into, this job. */
  noteAdded(key: string, address: ActorAddress, jobId: string): void {
    const { clock, afterMs } = this.#deps;
    const now = clock.monotonic();
    const job = this.#jobs.get(key);
    if (job?.jobId !== jobId) return this.#keep(key, { jobId, since: now });
    const waitedMs = now - job.since;
    const suspectAfterMs = now < this.#suspectUntil ? Math.min(SUSPECT_AFTER_MS, afterMs) : afterMs;
    if (waitedMs < suspectAfterMs || this.#isLooking || now - this.#lookedAt < LOOK_EVERY_MS) return;
    const isLate = waitedMs >= afterMs;
    if (isLate) job.since = now;
    this.#lookedAt = now;
    this.#isLooking = true;
    void this.#inspect(key, address, { jobId, isLate }).finally(() => (this.#isLooking = false));
  }

  #keep(key: string, job: { jobId: string; since: number }): void {
    this.#jobs.delete(key);
    this.#jobs.set(key, job);
    if (this.#jobs.size <= MAX_KNOWN) return;
    const [oldest] = this.#jobs.keys();
    if (oldest !== undefined) this.#jobs.delete(oldest);
  }

  async #inspect(key: string, address: ActorAddress, job: { jobId: string; isLate: boolean }): Promise<void> {
    const { queue, addWake, warn } = this.#deps;
    const { jobId, isLate } = job;
    try {
      const state = await queue.getJobState(jobId);
      if (state === 'prioritized') {
        // A wake that has waited long in a late lane moves to the plain queue.
        if (isLate) await queue.getBackend().changePriority(jobId, 0);
      } else if (state === 'unknown' || state === 'completed' || state === 'failed') {
        warn(`the wake ${jobId} of ${key} was in no list and swallowed all later ones: removed`, 'queue');
        await queue.getBackend().removeDeduplicationKey(key, jobId);
        await queue.remove(jobId);
        await addWake(key, address);
      }
    } catch (error) {
      warn(error, 'queue');
    }
  }
}
