import type { EngineLimits } from '../../actors/engine/engine-deps.ts';
import type { Clock } from '../../base/clock.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Admission, AdmissionCaps } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
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

export interface ServiceOptions {
  clock: Clock;
  caps: AdmissionCaps;
  leaseMs: number;
  /** Maximum actors of one tenant whose wakes the queue holds; sweeps find the others. */
  mostWaiting: number;
  metrics: Metrics;
  onWarning: (error: unknown, where: string) => void;
  /** Called when the worker takes no more wakes and cannot recover in this process. */
  onDeaf: () => void;
}

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
