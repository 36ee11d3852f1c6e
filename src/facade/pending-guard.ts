import type { PendingCount } from '../actors/engine/pending-count.ts';
import { TroupeError } from '../errors.ts';
import type { EventDraft } from '../events/index.ts';
import type { ConversationKey, Store } from '../store/store.ts';

/** Throws `tenant_busy` for what would wake somebody where too many wait already. */
export type PendingGuard = (log: ConversationKey, draft: EventDraft) => Promise<void>;

const RETRY_AFTER_MS = 1_000;

/** Keeps one tenant from filling the queue of all. What was accepted before is given again, however many wait. */
export function createPendingGuard({
  pending,
  store,
}: {
  pending: PendingCount;
  store: Pick<Store, 'readById'>;
}): PendingGuard {
  return async function refuseFlood(log, { id, to }) {
    if (to.length === 0) return;
    const { limit } = pending;
    const waiting = await pending.of(log.tenant);
    if (waiting < limit || (await store.readById(log, id)) !== null) return;
    const message = `${waiting} agents of this tenant wait for their turn: send it again later, with the same id`;
    throw new TroupeError('tenant_busy', message, { waiting, limit, retryAfterMs: RETRY_AFTER_MS });
  };
}
