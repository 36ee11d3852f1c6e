import type { EngineLimits } from '../../actors/actor/engine-deps.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { Admission } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { QueueOptions } from '../../queue/queue-server.ts';
import type { Router } from '../../queue/router.ts';
import type { Store } from '../../store/store.ts';

/** The store and the queue of one process. Only they differ between the embedded and the distributed mode. */
export interface Services {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  admission: Admission;
  /** Limits whose defaults this mode overrides. */
  limits: Partial<EngineLimits>;
  /** Called after the engine has stopped. */
  close(): Promise<void>;
}

/** What both modes take. */
export type ServiceOptions = Omit<QueueOptions, 'pace'>;

/** The key-value entries of one tenant. */
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
