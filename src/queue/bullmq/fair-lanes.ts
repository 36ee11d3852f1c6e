import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import { familyOf } from '../family.ts';
import { createTenantBacklog } from './tenant-backlog.ts';

/**
 * In which lane a wake queues, so that tenants take turns, and within a tenant its conversations with their threads.
 * What waits is counted three times:
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
  /** Where a set of actors stands, by what it counts. */
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
