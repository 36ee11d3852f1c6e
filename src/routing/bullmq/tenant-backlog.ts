import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { ActorAddress, TenantId } from '../../events/index.ts';

/**
 * Fairness between tenants. A tenant with few waiting wakes queues plainly, first in, first out. One with a large
 * backlog has its further wakes put into lanes behind all plain ones: the larger the backlog, the later the lane.
 *
 * Owns: one set per tenant in Redis with the actors that wait, written along with the wake in the same write to the
 * socket, so that nobody waits for it; and what this process last heard of their sizes.
 *  T1  Adding and taking are idempotent per actor: wakes that are merged do not count twice, nothing is counted down
 *      twice. A process that dies between the two leaves at most its own actors too many.
 *  T2  A set that says far more than the whole queue holds is thrown away (`repair`), looked at once a second while it
 *      matters and not at all while it does not.
 *  T3  While a tenant is behind, its lanes never go back: later wakes of it do not overtake earlier ones.
 */
const PLAIN_WAKES = 64;
const MAX_LANE = 10_000;
/** What was heard longer ago says nothing about now. */
const FRESH_MS = 5_000;
/** A tenant that is not behind is asked for after so many wakes: one command more for sixteen. */
const ASK_EVERY = 16;
const REPAIR_EVERY_MS = 1_000;
const MAX_TENANTS_KNOWN = 10_000;

interface Known {
  size: number;
  heardAt: number;
  /** Counted in since the size was last asked for, and before. */
  since: number;
  asking: boolean;
  lane: number;
}

export interface TenantBacklogDeps {
  redis: Redis;
  keyOf: (tenant: string) => string;
  /** Waiting wakes of all tenants. */
  countWaiting: () => Promise<number>;
  clock: Clock;
}

export function createTenantBacklog({ redis, keyOf, countWaiting, clock }: TenantBacklogDeps) {
  const tenants = new Map<TenantId, Known>();
  const taken = new Map<TenantId, string[]>();
  let repairedAt = Number.NEGATIVE_INFINITY;

  /** Counts an actor as waiting and says in which lane its wake belongs; 0 is the plain queue. */
  function enter({ tenant }: ActorAddress, member: string): number {
    const known = find(tenant);
    redis.sadd(keyOf(tenant), member).catch(ignore);
    if (clock.monotonic() - known.heardAt > FRESH_MS) known.size = 0;
    known.since += 1;
    const behind = known.size + known.since - PLAIN_WAKES;
    known.lane = behind <= 0 ? 0 : Math.min(Math.max(known.lane, Math.ceil(behind / PLAIN_WAKES)), MAX_LANE);
    if (!known.asking && (known.lane > 0 || known.since >= ASK_EVERY)) void ask(tenant, known);
    if (known.lane > 0) void repair(tenant, known);
    return known.lane;
  }

  async function ask(tenant: TenantId, known: Known): Promise<void> {
    known.asking = true;
    const counted = known.since;
    try {
      known.size = await redis.scard(keyOf(tenant));
      known.since -= counted;
      known.heardAt = clock.monotonic();
    } catch (error) {
      ignore(error);
    } finally {
      known.asking = false;
    }
  }

  /** The actor waits no more. Told to Redis once per turn of the event loop for all that were taken in it. */
  function leave({ tenant }: ActorAddress, member: string): void {
    if (taken.size === 0) setImmediate(sendTaken);
    const members = taken.get(tenant);
    if (members) members.push(member);
    else taken.set(tenant, [member]);
  }

  function sendTaken(): void {
    for (const [tenant, members] of taken) redis.srem(keyOf(tenant), ...members).catch(ignore);
    taken.clear();
  }

  async function repair(tenant: TenantId, known: Known): Promise<void> {
    const now = clock.monotonic();
    if (now - repairedAt < REPAIR_EVERY_MS) return;
    repairedAt = now;
    try {
      const [waiting, size] = await Promise.all([countWaiting(), redis.scard(keyOf(tenant))]);
      if (size <= PLAIN_WAKES || size <= 2 * waiting) return;
      await redis.unlink(keyOf(tenant));
      known.size = 0;
      known.lane = 0;
    } catch (error) {
      ignore(error);
    }
  }

  function find(tenant: TenantId): Known {
    const found = tenants.get(tenant);
    if (found) return found;
    if (tenants.size >= MAX_TENANTS_KNOWN) tenants.clear();
    const known = { size: 0, heardAt: Number.NEGATIVE_INFINITY, since: 0, asking: false, lane: 0 };
    tenants.set(tenant, known);
    return known;
  }

  return { enter, leave, size: (tenant: TenantId): Promise<number> => redis.scard(keyOf(tenant)) };
}

export type TenantBacklog = ReturnType<typeof createTenantBacklog>;

/** An estimate that could not be written is a little wrong; the wake itself tells that Redis is away. */
function ignore(_error: unknown): void {}
