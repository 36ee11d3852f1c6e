import { luaScript, type RedisClient } from '../redis/connect-redis.ts';
import type { Clock } from '../../base/clock.ts';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import { familyOf } from '../fair-queue.ts';

/**
 * Chooses the lane of a wake, so that tenants take turns, and so do the conversations of a tenant with their threads.
 * Waiting actors are counted three times:
 *  F1  By conversation. An actor far behind in its conversation gets a late lane for that reason alone.
 *  F2  By tenant, but only actors that are not far behind in their conversation. So one long conversation does not delay
 *      the others, and a tenant with many conversations is late in proportion.
 *  F3  By tenant, all of them: the count by which new messages are refused and wakes are dropped (R8).
 */
export interface FairLanes {
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

/** KEYS sets. ARGV: a member of all. A key that is no set keeps no other from being changed, here and below. */
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

/** Sets of waiting actors, changed together: one command for a wake, and one for all removals of an event-loop turn. */
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

export function createFairLanes({ keyOf, mostWaiting, ...deps }: FairLanesOptions): FairLanes {
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
