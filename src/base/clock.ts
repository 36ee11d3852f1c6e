/** The source of time. Records use `now`; leases and deadlines use `monotonic`, which never jumps. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; 0 yields to the event loop once. Never rejects. */
  sleep(ms: number, signal?: AbortSignal, purpose?: SleepPurpose): Promise<void>;
  /** Present if a test moves this clock. Default: time passes by itself. */
  readonly moved?: MovedTime | undefined;
}

/**
 * Purpose of a sleep; absent if the sleep is a time limit. `pause`: a turn or a wake waits for its end. `look`: a
 * search for due work follows. `upkeep`: no turn waits for it.
 */
type SleepPurpose = 'pause' | 'look' | 'upkeep';

/** What a troupe uses of a clock that a test moves. */
interface MovedTime {
  /** Number of `pause` sleeps that end only when the test moves the clock. They are not work: `idle` resolves meanwhile. */
  pauses(): number;
  /** Registers a troupe that was opened with this clock. Returns a function to call when the troupe closes. */
  attend(troupe: AttendedTroupe): () => void;
}

/** What a clock that a test moves uses of a troupe. */
export interface AttendedTroupe {
  /** Whether it searches for due work. False: it runs no agents. */
  looks: boolean;
  /** Resolves when it has nothing to do until time passes. */
  rest(): Promise<void>;
  /** Number of things that are due at a time, ms since the epoch. */
  dueBy(at: number): Promise<number>;
}

/** The clock of the system. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      if (ms <= 0) return void setImmediate(resolve);
      const timer = setTimeout(wake, ms);
      function wake() {
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      }
      signal?.addEventListener('abort', wake, { once: true });
    }),
};
