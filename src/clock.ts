/** Time as a port. `now` is wall time for records; `monotonic` never jumps and is what leases and deadlines use. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start, never going back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; 0 yields to the event loop once. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

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
