import type { Clock } from '../clock.ts';
import type { Metrics } from '../metrics.ts';

/** How long wakes waited that this process took lately; `failed` of them ended in an error. */
export interface QueueWaits {
  wait: { p50Ms: number; p95Ms: number; count: number } | null;
  failed: number;
}

const MAX_WAKES = 1_000;
const MAX_AGE_MS = 300_000;

/**
 * Metrics that are looked at on their way: the last `MAX_WAKES` waits of the last `MAX_AGE_MS` are kept. What an operator
 * wants to know now, a counter since the start of the process does not tell.
 */
export function watchWaits(
  metrics: Metrics,
  clock: Pick<Clock, 'monotonic'>,
): Metrics & { waits(): QueueWaits } {
  const waited = createRing();
  const failed = createRing();
  return {
    count: (name, labels, by) => metrics.count(name, labels, by),
    change: (name, by) => metrics.change(name, by),
    time(name, labels, ms) {
      metrics.time(name, labels, ms);
      if (name === 'wake_wait') waited.add(clock.monotonic(), Math.max(0, ms));
      else if (name === 'activation' && 'outcome' in labels && labels.outcome === 'failed')
        failed.add(clock.monotonic(), ms);
    },
    waits() {
      const since = clock.monotonic() - MAX_AGE_MS;
      const sorted = waited.since(since).toSorted((a, b) => a - b);
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

/** The smallest value that so large a part does not exceed; to a tenth of a millisecond. */
function quantile(sorted: readonly number[], part: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
  return Math.round(value * 10) / 10;
}
