import type { WakeOutcome } from './router.ts';

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
