import type { Clock } from '../../clock.ts';
import type { TenantId } from '../../events/index.ts';
import type { Router } from '../../queue/router.ts';

/** How many actors of a tenant wait for their turn, and how many may. */
export interface PendingCount {
  readonly limit: number;
  /** Never rejects: while the queue cannot be asked, nobody is refused. */
  of(tenant: TenantId): Promise<number>;
}

export const DEFAULT_PENDING = 50_000;
/** How old a count may be: a flood may go beyond the limit by what comes in so long. */
const COUNT_LIFE_MS = 250;
const MAX_TENANTS = 1_000;

export function createPendingCount({
  router,
  clock,
  limit = DEFAULT_PENDING,
}: {
  router: Pick<Router, 'backlog'>;
  clock: Pick<Clock, 'monotonic'>;
  limit?: number | undefined;
}): PendingCount {
  const counts = new Map<TenantId, { at: number; waiting: Promise<number> }>();
  return {
    limit,
    of(tenant) {
      const now = clock.monotonic();
      const known = counts.get(tenant);
      if (known && now - known.at < COUNT_LIFE_MS) return known.waiting;
      if (counts.size >= MAX_TENANTS) counts.clear();
      const waiting = router.backlog(tenant).catch(() => 0);
      counts.set(tenant, { at: now, waiting });
      return waiting;
    },
  };
}
