import { DEFAULT_TENANT, type TenantId } from '../events/index.ts';
import type { Notes } from '../notes.ts';
import type { Store } from '../store/store.ts';

/** A tenant's notes in a store. */
export function notesOf(store: Pick<Store, 'recall' | 'remember' | 'claim'>, tenant: TenantId): Notes {
  const scope = tenant === DEFAULT_TENANT ? '' : `${tenant}/`;
  return {
    recall: (key) => store.recall(tenant, key),
    remember: (key, from, to) => store.remember(tenant, key, from, to),
    claim: (task, lease) => store.claim(`${scope}${task}`, lease),
  };
}
