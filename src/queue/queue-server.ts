import type { Clock } from '../base/clock.ts';
import type { Metrics } from '../events/metrics.ts';
import type { Admission, AdmissionCaps } from './admission.ts';
import type { Broadcast } from './broadcast.ts';
import type { StorePace } from './fair-share.ts';
import type { Router, WakeOutcome } from './router.ts';

/** What the processes of the distributed mode share beside the store. All of it may be lost at any moment. */
export interface Queue {
  /** Wakes. */
  router: Router;
  /** Notices of new events and live text. */
  broadcast: Broadcast;
  /** Caps. */
  admission: Admission;
  /** Called after the router has closed. */
  close(): Promise<void>;
}

/** What a queue is opened with. */
export interface QueueOptions {
  /** Source of time. */
  clock: Clock;
  /** Of turns and of calls to providers. */
  caps: AdmissionCaps;
  /** How long an actor is leased, ms. A wake that its holder does not renew is given to another before that. */
  leaseMs: number;
  /** Maximum actors of one tenant whose wakes the queue holds; sweeps find the others. */
  mostWaiting: number;
  /** Of this process. */
  metrics: Metrics;
  /** Called with what went wrong and was survived. */
  onWarning: (error: unknown, where: string) => void;
  /** Called when the worker takes no more wakes and cannot recover in this process. */
  onDeaf: () => void;
  /** How many turns the store bears at once. */
  pace: StorePace;
}

/** A server on which a queue can be opened. */
export interface QueueServer {
  /** Checks the server before anything is opened. */
  check(options: Pick<QueueOptions, 'onWarning'>): Promise<unknown>;
  /** Throws the errors of its server. */
  open(options: QueueOptions): Promise<Queue>;
}

/** Counts what a router tells. */
export function queueObserver(metrics: Metrics): RouterObserver {
  return {
    onTaken: ({ waitMs }) => metrics.time('wake_wait', {}, waitMs),
    onDone: ({ runMs, outcome }) => metrics.time('activation', { outcome }, runMs),
    onIgnored: () => metrics.count('wakes_ignored', {}),
    onMended: (part) => metrics.count('queue_mended', { part }),
  };
}

/** Facts for histograms and counters. */
export interface RouterObserver {
  /** The work of a wake has begun; `waitMs` since it was added. */
  onTaken?(facts: { waitMs: number }): void;
  /** The work of a wake has ended. */
  onDone?(facts: { runMs: number; outcome: WakeOutcome['kind'] | 'failed' }): void;
  /** A job was not a wake of this troupe. */
  onIgnored?(): void;
  /** A damaged key or table was repaired, or the queue was emptied. */
  onMended?(part: 'queue' | 'key'): void;
}
