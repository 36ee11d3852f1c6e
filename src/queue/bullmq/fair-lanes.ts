import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import { familyOf } from '../fair-queue.ts';

/**
 * Chooses the lane of a wake, so that tenants take turns, and within a tenant its conversations with their threads.
 * Waiting actors are counted three times:
 *  F1  By conversation. What is far behind there has a late lane by that alone.
 *  F2  By tenant, but only what is not far behind in its conversation. So the rest of one conversation delays no other,
 *      and a tenant with many of them is as late as they are many.
 *  F3  By tenant, all of it: what doors and agents are refused by, and beyond which nothing more is added (R8).
 */
export interface FairLanes {
  /** Counts an actor as waiting and says in which lane; null where so many of its tenant wait that it is left out. */
  enter(address: ActorAddress, member: string): number | null;
  leave(address: ActorAddress, member: string): void;
  size(tenant: TenantId): Promise<number>;
}

export function createFairLanes(options: {
  redis: Redis;
  /** Redis key of a set of actors, by what it counts. */
  keyOf: (counted: 'backlog' | 'front' | 'family', group: string) => string;
  countWaiting: () => Promise<number>;
  clock: Clock;
  mostWaiting: number;
}): FairLanes {
  const { redis, keyOf, countWaiting, clock, mostWaiting } = options;
  const open = (counted: 'backlog' | 'front' | 'family') =>
    createTenantBacklog({ redis, keyOf: (group) => keyOf(counted, group), countWaiting, clock });
  const all = open('backlog');
  const fronts = open('front');
  const families = open('family');
  const nameOf = ({ tenant, conversation }: ActorAddress) => `${tenant}/${familyOf(conversation)}`;

  return {
    enter(address, member) {
      const { tenant } = address;
      if (all.estimate(tenant) >= mostWaiting) return null;
      all.enter(tenant, member);
      const own = families.enter(nameOf(address), member);
      return own === 0 ? fronts.enter(tenant, member) : Math.max(own, fronts.laneOf(tenant));
    },
    leave(address, member) {
      all.leave(address.tenant, member);
      fronts.leave(address.tenant, member);
      families.leave(nameOf(address), member);
    },
    size: (tenant) => all.size(tenant),
  };
}

/**
 * Fairness between groups: tenants, or the conversations of one (`fair-lanes.ts`). A group with few waiting wakes queues
 * plainly, first in, first out. One with a large backlog has its further wakes put into lanes behind all plain ones: the
 * larger the backlog, the later the lane.
 *
 * Owns: one set per group in Redis with the actors that wait, written along with the wake in the same write to the
 * socket, so that nobody waits for it; and what this process last heard of their sizes.
 *  T1  Adding and taking are idempotent per actor: wakes that are merged do not count twice, nothing is counted down
 *      twice. A process that dies between the two leaves at most its own actors too many.
 *  T2  A set that says far more than the whole queue holds is thrown away (`repair`), looked at once a second while it
 *      matters and not at all while it does not.
 *  T3  While a group is behind, its lanes never go back: later wakes of it do not overtake earlier ones.
 *  T4  A set that nobody adds to for a day is forgotten: of what died with its process nothing stays for ever.
 */
const PLAIN_WAKES = 64;
const MAX_LANE = 10_000;
/** Sizes older than this are ignored. */
const FRESH_MS = 5_000;
/** A group that is not behind is asked for after so many wakes: one command more for sixteen. */
const ASK_EVERY = 16;
const REPAIR_EVERY_MS = 1_000;
const MAX_GROUPS_KNOWN = 10_000;
const KEPT_S = 86_400;

interface Known {
  size: number;
  heardAt: number;
  /** Counted in since the size was last asked for, and before. */
  since: number;
  asking: boolean;
  lane: number;
}

interface TenantBacklogDeps {
  redis: Redis;
  keyOf: (group: string) => string;
  /** Number of waiting wakes of all tenants. */
  countWaiting: () => Promise<number>;
  clock: Clock;
}

function createTenantBacklog({ redis, keyOf, countWaiting, clock }: TenantBacklogDeps) {
  const groups = new Map<string, Known>();
  const taken = new Map<string, string[]>();
  let repairedAt = Number.NEGATIVE_INFINITY;

  /** Counts an actor as waiting and says in which lane its wake belongs; 0 is the plain queue. */
  function enter(group: string, member: string): number {
    const known = find(group);
    redis.sadd(keyOf(group), member).catch(ignore);
    if (clock.monotonic() - known.heardAt > FRESH_MS) known.size = 0;
    known.since += 1;
    if (known.since % ASK_EVERY === 1) redis.expire(keyOf(group), KEPT_S).catch(ignore);
    const behind = known.size + known.since - PLAIN_WAKES;
    known.lane = behind <= 0 ? 0 : Math.min(Math.max(known.lane, Math.ceil(behind / PLAIN_WAKES)), MAX_LANE);
    lookAfter(group, known, known.since >= ASK_EVERY);
    return known.lane;
  }

  function lookAfter(group: string, known: Known, mayAsk: boolean): void {
    if (!known.asking && (known.lane > 0 || mayAsk)) void ask(group, known);
    if (known.lane > 0) void repair(group, known);
  }

  /** An estimate from the last known size. A refused caller asks again. */
  function estimate(group: string): number {
    const known = groups.get(group);
    if (!known || clock.monotonic() - known.heardAt > FRESH_MS) return 0;
    lookAfter(group, known, false);
    return known.size + known.since;
  }

  function laneOf(group: string): number {
    const known = groups.get(group);
    return known && clock.monotonic() - known.heardAt <= FRESH_MS ? known.lane : 0;
  }

  async function ask(group: string, known: Known): Promise<void> {
    known.asking = true;
    const counted = known.since;
    try {
      known.size = await redis.scard(keyOf(group));
      known.since -= counted;
      known.heardAt = clock.monotonic();
    } catch (error) {
      ignore(error);
    } finally {
      known.asking = false;
    }
  }

  /** Counts the actor as no longer waiting. Redis gets one command per event-loop turn for all of them. */
  function leave(group: string, member: string): void {
    if (taken.size === 0) setImmediate(sendTaken);
    const members = taken.get(group);
    if (members) members.push(member);
    else taken.set(group, [member]);
  }

  function sendTaken(): void {
    for (const [group, members] of taken) redis.srem(keyOf(group), ...members).catch(ignore);
    taken.clear();
  }

  async function repair(group: string, known: Known): Promise<void> {
    const now = clock.monotonic();
    if (now - repairedAt < REPAIR_EVERY_MS) return;
    repairedAt = now;
    try {
      const [waiting, size] = await Promise.all([countWaiting(), redis.scard(keyOf(group))]);
      if (size <= PLAIN_WAKES || size <= 2 * waiting) return;
      await redis.unlink(keyOf(group));
      known.size = 0;
      known.lane = 0;
    } catch (error) {
      ignore(error);
    }
  }

  function find(group: string): Known {
    const found = groups.get(group);
    if (found) return found;
    if (groups.size >= MAX_GROUPS_KNOWN) groups.clear();
    const known = { size: 0, heardAt: Number.NEGATIVE_INFINITY, since: 0, asking: false, lane: 0 };
    groups.set(group, known);
    return known;
  }

  return {
    enter,
    leave,
    estimate,
    laneOf,
    size: (group: string): Promise<number> => redis.scard(keyOf(group)),
  };
}

/** A failed write only makes the estimate inexact; the wake itself reports that Redis is unavailable. */
function ignore(_error: unknown): void {}
