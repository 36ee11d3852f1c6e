import type { Clock } from '../clock.ts';

export interface LagOptions {
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** The longest stall that is put up with, ms; 0 puts up with any. */
  maxLagMs: number;
  onStall: (lagMs: number) => void;
}

const BEAT_MS = 250;

/**
 * Notices when this process stood still: a tool that computes without pause, a long collection of garbage, a stopped
 * machine. While it stood still it renewed no lease, and its actors may be at work elsewhere.
 * A process that never runs again notices nothing; `/healthz` does not answer then. Returns what ends the watch.
 */
export function watchLag({ clock, maxLagMs, onStall }: LagOptions): () => void {
  const stopped = new AbortController();
  const beat = Math.min(BEAT_MS, Math.max(1, maxLagMs / 4));

  async function watch(): Promise<void> {
    while (!stopped.signal.aborted) {
      const before = clock.monotonic();
      await clock.sleep(beat, stopped.signal);
      const lag = clock.monotonic() - before - beat;
      if (lag > maxLagMs && !stopped.signal.aborted) onStall(Math.round(lag));
    }
  }

  if (maxLagMs > 0) void watch();
  return () => stopped.abort();
}
