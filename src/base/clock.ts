/** The source of time. Records use `now`; leases and deadlines use `monotonic`, which never jumps. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonic(): number;
  /**
   * Resolves after `ms`, or at once when `signal` aborts; 0 yields to the event loop once. Never rejects. `upkeep`: no turn
   * waits for it, so a clock that stands still between turns does not move on by it.
   */
  sleep(ms: number, signal?: AbortSignal, purpose?: 'upkeep'): Promise<void>;
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
