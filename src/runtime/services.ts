import type { EngineLimits } from '../actors/engine/engine-deps.ts';
import type { Clock } from '../clock.ts';
import type { Metrics } from '../metrics.ts';
import type { Admission, AdmissionCaps } from '../queue/admission.ts';
import type { Broadcast } from '../queue/broadcast.ts';
import type { Router } from '../queue/router.ts';
import type { Store } from '../store/store.ts';

/** What an engine stands on, opened: the embedded mode and the distributed one differ in nothing else. */
export interface Services {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  admission: Admission;
  /** What this mode needs otherwise than by default. */
  limits: Partial<EngineLimits>;
  /** After the engine has stopped. */
  close(): Promise<void>;
}

export interface ServiceOptions {
  clock: Clock;
  caps: AdmissionCaps;
  leaseMs: number;
  /** Actors of one tenant whose wakes are held at most; what is left out is found by sweeps. */
  mostWaiting: number;
  metrics: Metrics;
  onWarning: (error: unknown, where: string) => void;
  /** A worker that takes no wakes any more and cannot be mended from within. */
  onDeaf: () => void;
}
