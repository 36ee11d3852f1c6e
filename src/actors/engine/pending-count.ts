import type { Clock } from '../../base/clock.ts';
import type { TenantId } from '../../events/index.ts';
import type { Router } from '../../queue/router.ts';

/** Counts the actors of a tenant that wait for a turn, against a limit. */
export interface PendingCount {
  readonly limit: number;
  /** Never rejects: 0 while the queue is unavailable, so that no one is refused. */
  of(tenant: TenantId): Promise<number>;
}

export const DEFAULT_PENDING = 50_000;
/** Greatest age of a count. A flood may exceed the limit by what comes in this time. */
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
