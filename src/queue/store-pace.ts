import type { Clock } from '../clock.ts';

/**
 * How much at once a store keeps pace with, told by how long it takes: with more than that each operation only waits for
 * the others. The limit goes up while the store answers about as fast as it ever did, and down when it does not, as with
 * the congestion windows of TCP Vegas (Brakmo and Peterson, 1995).
 */
export interface StorePace {
  /** An operation took so long, ms. */
  took(ms: number): void;
  /** Told how much goes on at the moment. At least 1. */
  limit(running: number): number;
}

/** Share of one operation in the average. */
const WEIGHT = 0.05;
/** So many times as slow as its best, and so many ms beyond it: then it does not keep pace. */
const SLOW_TIMES = 2;
const SLOW_MS = 2;
/** Between two changes of the limit: what the last one brought has to show. */
const CHANGE_EVERY_MS = 100;
const LESS = 0.7;
const MORE = 1.1;
/** The best is that of this time or the one before: a store that has become slower for good is no longer measured by it. */
const BEST_OF_MS = 600_000;

export function createStorePace(most: number, clock: Pick<Clock, 'monotonic'>): StorePace {
  let average: number | null = null;
  let best = { now: Infinity, before: Infinity, since: clock.monotonic() };
  let limit = most;
  let changedAt = Number.NEGATIVE_INFINITY;

  function isSlow(): boolean {
    const least = Math.min(best.now, best.before);
    return average !== null && average > least * SLOW_TIMES + SLOW_MS;
  }

  return {
    took(ms) {
      average = average === null ? ms : average + WEIGHT * (ms - average);
      const now = clock.monotonic();
      if (now - best.since > BEST_OF_MS) best = { now: Infinity, before: best.now, since: now };
      best.now = Math.min(best.now, average);
    },
    limit(running) {
      const now = clock.monotonic();
      if (now - changedAt >= CHANGE_EVERY_MS) {
        changedAt = now;
        limit = isSlow() ? Math.max(1, Math.min(limit, running) * LESS) : Math.min(most, limit * MORE + 1);
      }
      return Math.floor(limit);
    },
  };
}
