import type { Clock } from './troupe.ts';

/** A clock that only a test advances. */
export interface FakeClock extends Clock {
  /**
   * Advances time by `ms` and wakes sleepers in the order of their due times. The work of each runs before the next one
   * wakes, and sleeps started meanwhile also end if they are due within `ms`.
   */
  advance(ms: number): Promise<void>;
  /** Number of pending sleeps. */
  sleeping(): number;
  /** Remaining time of each pending sleep, ms. */
  left(): number[];
}

interface Sleeper {
  due: number;
  wake: () => void;
}

const DEFAULT_START_MS = Date.UTC(2026, 0, 1);

/** A clock that stands still until it is advanced. */
export function createFakeClock(start: number = DEFAULT_START_MS): FakeClock {
  const sleepers = new Set<Sleeper>();
  let elapsed = 0;

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted || ms <= 0) return resolve();
      const sleeper = { due: elapsed + ms, wake };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
      function wake(): void {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      }
    });
  }

  async function advance(ms: number): Promise<void> {
    const end = elapsed + ms;
    await settled();
    for (let next = earliest(end); next; next = earliest(end)) {
      elapsed = next.due;
      next.wake();
      await settled();
    }
    elapsed = end;
  }

  /** The next sleeper due by `end`. At equal times the one that started first, because a Set keeps that order. */
  function earliest(end: number): Sleeper | null {
    let first: Sleeper | null = null;
    for (const sleeper of sleepers) {
      if (sleeper.due <= end && (!first || sleeper.due < first.due)) first = sleeper;
    }
    return first;
  }

  return {
    // Whole milliseconds, like the real clock, even after sleeps of fractions.
    now: () => Math.floor(start + elapsed),
    monotonic: () => elapsed,
    sleep,
    advance,
    sleeping: () => sleepers.size,
    left: () => [...sleepers].map(({ due }) => due - elapsed),
  };
}

/** Resolves when no microtask is left. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
