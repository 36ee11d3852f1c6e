import { type Erased, erasePerson } from '../../actors/erasure/erase-person.ts';
import { SYSTEM_AUTHOR } from '../../events/index.ts';
import type { ErasureReceipt, ErasureRequest } from '../troupe.ts';
import type { TenantContext } from './tenant-context.ts';

/** What a store cannot reach. */
const OUTSIDE = [
  'what was sent to the vendors of models: their own terms say how long they keep it',
  'what was delivered before: webhooks, Nostr relays, answers of doors, pages that are open',
  'backups of the store, and exports made before',
  'logs and traces of processes and tools, and what tools have written elsewhere',
] as const;

/** Erases what a person said, and records what was done without the words. */
export async function erase(
  { parts, conversations, tenant }: TenantContext,
  { person, by = SYSTEM_AUTHOR, onProgress }: ErasureRequest,
): Promise<ErasureReceipt> {
  const { deps } = parts;
  const { store, clock } = deps;
  const id = clock.now().toString(36) + Math.floor(deps.random() * 36 ** 6).toString(36);
  let read = 0;
  const erased: Erased = await erasePerson(
    { ...deps, forget: (log) => conversations.participantsCache.forget(log) },
    { tenant, person, id, by },
    (conversation) => onProgress?.({ conversation, read: (read += 1) }),
  );
  const remains = await store.scrub();
  const receipt: ErasureReceipt = {
    id,
    tenant,
    person,
    at: clock.now(),
    ...erased,
    remains,
    outside: [...OUTSIDE],
  };
  await store.compareAndSet(tenant, `erasure/${id}`, null, JSON.stringify(receipt));
  return receipt;
}
