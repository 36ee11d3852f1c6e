import { DEFAULT_TENANT, type TenantId } from '../events/index.ts';
import type { KeyValue } from '../key-value.ts';
import type { Store } from '../store/store.ts';

/** A tenant's notes in a store. */
export function keyValueOf(
  store: Pick<Store, 'get' | 'compareAndSet' | 'claim'>,
  tenant: TenantId,
): KeyValue {
  const scope = tenant === DEFAULT_TENANT ? '' : `${tenant}/`;
  return {
    get: (key) => store.get(tenant, key),
    compareAndSet: (key, from, to) => store.compareAndSet(tenant, key, from, to),
    claim: (task, lease) => store.claim(`${scope}${task}`, lease),
  };
}
