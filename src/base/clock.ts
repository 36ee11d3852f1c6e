/** The source of time. Records use `now`; leases and deadlines use `monotonic`, which never jumps. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; 0 yields to the event loop once. Never rejects. */
  sleep(ms: number, signal?: AbortSignal, purpose?: SleepPurpose): Promise<void>;
  /** Of a clock that a test moves on. Default: time goes on by itself alone. */
  readonly moved?: MovedTime | undefined;
}

/**
 * What a sleep is for, if it is no limit of something else. `pause`: a turn or a wake goes on only after it. `look`: the search for work
 * that has become due. `upkeep`: no turn waits for it.
 */
type SleepPurpose = 'pause' | 'look' | 'upkeep';

/** A clock that a test moves on, as a troupe sees it. */
interface MovedTime {
  /** Number of sleeps for a `pause` that end only when it is moved. What waits for one is no work, so `idle` ends meanwhile. */
  pauses(): number;
  /** A troupe was opened with this clock. Returns what says that it is closed. */
  attend(troupe: AttendedTroupe): () => void;
}

/** A troupe, as a clock that a test moves on sees it. */
export interface AttendedTroupe {
  /** It searches for work that has become due. */
  looks: boolean;
  /** Resolves when it has nothing to do until time passes. */
  rest(): Promise<void>;
  /** How much will have become due by a time, ms since the epoch. */
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
