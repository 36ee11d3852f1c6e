import type { Metrics } from '../../events/metrics.ts';
import type { Admission } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { StorePace } from '../../queue/fair-share.ts';
import type { RouterObserver } from '../../queue/router-observer.ts';
import type { Router } from '../../queue/router.ts';
import type { ServiceOptions } from './services.ts';

/** What the processes of the distributed mode share beside the store. All of it may be lost at any moment. */
export interface Queue {
  router: Router;
  broadcast: Broadcast;
  admission: Admission;
  /** Called after the router has closed. */
  close(): Promise<void>;
}

export interface QueueOptions extends ServiceOptions {
  pace: StorePace;
}

export interface QueueServer {
  /** Checks the server before anything is opened. */
  check(options: Pick<ServiceOptions, 'onWarning'>): Promise<unknown>;
  open(options: QueueOptions): Promise<Queue>;
}

export function queueObserver(metrics: Metrics): RouterObserver {
  return {
    onTaken: ({ waitMs }) => metrics.time('wake_wait', {}, waitMs),
    onDone: ({ runMs, outcome }) => metrics.time('activation', { outcome }, runMs),
    onIgnored: () => metrics.count('wakes_ignored', {}),
    onMended: (part) => metrics.count('queue_mended', { part }),
  };
}
