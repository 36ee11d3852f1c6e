import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import type { EventDraft, TenantId } from '../events/index.ts';
import type { Router } from '../routing/router.ts';
import type { Log, Store } from '../store/store.ts';

/** Throws `tenant_busy` for what would wake somebody where too many wait already. */
export type PendingGuard = (log: Log, draft: EventDraft) => Promise<void>;

const DEFAULT_LIMIT = 50_000;
/** How old a count may be: a flood may go beyond the limit by what comes in so long. */
const COUNT_LIFE_MS = 250;
const RETRY_AFTER_MS = 1_000;
const MAX_TENANTS = 1_000;

/**
 * Keeps one tenant from filling the queue of all. What was accepted before is given again, however many wait; while the
 * queue cannot be asked, nothing is refused.
 */
export function createPendingGuard(parts: {
  router: Pick<Router, 'backlog'>;
  store: Pick<Store, 'readById'>;
  clock: Pick<Clock, 'monotonic'>;
  limit?: number | undefined;
}): PendingGuard {
  const { router, store, clock, limit = DEFAULT_LIMIT } = parts;
  const counts = new Map<TenantId, { at: number; waiting: Promise<number> }>();

  function count(tenant: TenantId): Promise<number> {
    const now = clock.monotonic();
    const known = counts.get(tenant);
    if (known && now - known.at < COUNT_LIFE_MS) return known.waiting;
    if (counts.size >= MAX_TENANTS) counts.clear();
    const waiting = router.backlog(tenant).catch(() => 0);
    counts.set(tenant, { at: now, waiting });
    return waiting;
  }

  return async function refuseFlood(log, { id, to }) {
    if (to.length === 0) return;
    const waiting = await count(log.tenant);
    if (waiting < limit || (await store.readById(log, id)) !== null) return;
    const message = `${waiting} agents of this tenant wait for their turn: send it again later, with the same id`;
    throw new TroupeError('tenant_busy', message, { waiting, limit, retryAfterMs: RETRY_AFTER_MS });
  };
}
