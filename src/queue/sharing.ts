import type { Clock } from '../clock.ts';
import type { TenantId } from '../events/index.ts';

/** Whether tenants share a process: two of them had something to do here one after the other, not long ago. */
export interface Sharing {
  /** The tenant has something to do here. */
  note(tenant: TenantId): void;
  isShared(): boolean;
}

const SHARED_MS = 10_000;

/** Actors of one tenant that begin at once beside other tenants: somebody who talks, and no flood. */
export const FEW = 4;

export function createSharing(clock: Pick<Clock, 'monotonic'>): Sharing {
  let last: TenantId | null = null;
  let until = Number.NEGATIVE_INFINITY;
  return {
    note(tenant) {
      if (tenant === last) return;
      if (last !== null) until = clock.monotonic() + SHARED_MS;
      last = tenant;
    },
    isShared: () => clock.monotonic() < until,
  };
}
