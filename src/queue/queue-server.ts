import type { Clock } from '../base/clock.ts';
import type { Metrics } from '../events/metrics.ts';
import type { Admission, AdmissionCaps } from './admission.ts';
import type { Broadcast } from './broadcast.ts';
import type { StorePace } from './fair-share.ts';
import type { Router, WakeOutcome } from './router.ts';

/** What the processes of the distributed mode share besides the store. All of it may be lost at any moment. */
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

/** Options of opening a queue. */
export interface QueueOptions {
  /** Source of time. */
  clock: Clock;
  /** Caps on turns and on calls to providers. */
  caps: AdmissionCaps;
  /** How long an actor is leased, ms. A wake whose holder is dead goes to another process before the lease ends. */
  leaseMs: number;
  /** Maximum actors of one tenant whose wakes the queue holds; sweeps find the others. */
  mostWaiting: number;
  /** Metrics of this process. */
  metrics: Metrics;
  /** Receives errors that did not stop the work. */
  onWarning: (error: unknown, where: string) => void;
  /** Called when the worker takes no more wakes and cannot recover in this process. */
  onDeaf: () => void;
  /** The concurrency that the store can serve. */
  pace: StorePace;
}

/** A server on which a queue can be opened. */
export interface QueueServer {
  /** Checks the server before anything is opened. */
  check(options: Pick<QueueOptions, 'onWarning'>): Promise<unknown>;
  /** Throws the errors of its server. */
  open(options: QueueOptions): Promise<Queue>;
}

/** An observer that counts the work of a router in these metrics. */
export function queueObserver(metrics: Metrics): RouterObserver {
  return {
    onTaken: ({ waitMs }) => metrics.time('wake_wait', {}, waitMs),
    onDone: ({ runMs, outcome }) => metrics.time('activation', { outcome }, runMs),
    onIgnored: () => metrics.count('wakes_ignored', {}),
    onMended: (part) => metrics.count('queue_mended', { part }),
  };
}

/** Receives facts for histograms and counters. */
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
