import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../events/metrics.ts';

/** Waiting times of the wakes that this process took lately, and of those that wait now, in ms. `failed`: number of them that ended in an error. */
export interface QueueWaits {
  wait: { p50Ms: number; p95Ms: number; count: number } | null;
  failed: number;
}

const MAX_WAKES = 1_000;
const MAX_AGE_MS = 300_000;

/**
 * Passes metrics on and keeps the last `MAX_WAKES` waits of the last `MAX_AGE_MS`. Counters run since the start of the
 * process, so they do not show its present state.
 */
export function watchWaits(
  metrics: Metrics,
  clock: Pick<Clock, 'monotonic'>,
): Metrics & { waits(present?: readonly number[]): QueueWaits } {
  const waited = createRing();
  const failed = createRing();
  return {
    count: metrics.count.bind(metrics),
    change: metrics.change.bind(metrics),
    time(name, labels, ms) {
      metrics.time(name, labels, ms);
      if (name === 'wake_wait') waited.add(clock.monotonic(), Math.max(0, ms));
      else if (name === 'activation' && 'outcome' in labels && labels.outcome === 'failed')
        failed.add(clock.monotonic(), ms);
    },
    waits(present = []) {
      const since = clock.monotonic() - MAX_AGE_MS;
      const sorted = [...waited.since(since), ...present].toSorted((a, b) => a - b);
      return {
        wait:
          sorted.length === 0
            ? null
            : { p50Ms: quantile(sorted, 0.5), p95Ms: quantile(sorted, 0.95), count: sorted.length },
        failed: failed.since(since).length,
      };
    },
  };
}

function createRing() {
  const times = new Float64Array(MAX_WAKES);
  const values = new Float64Array(MAX_WAKES);
  let added = 0;
  return {
    add(at: number, value: number): void {
      times[added % MAX_WAKES] = at;
      values[added % MAX_WAKES] = value;
      added += 1;
    },
    since(at: number): number[] {
      return Array.from(values.subarray(0, Math.min(added, MAX_WAKES))).filter(
        (_, index) => (times[index] ?? 0) >= at,
      );
    },
  };
}

/** The `part`-th percentile, 0 to 1, rounded to 0.1 ms. */
function quantile(sorted: readonly number[], part: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
  return Math.round(value * 10) / 10;
}
