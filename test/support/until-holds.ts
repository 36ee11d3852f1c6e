import { vi } from 'vitest';

/** Ends a test that waits for what never comes; far beyond what a slow machine takes for what does. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 10;

/** Asks again and again until it no longer throws, for what comes by itself; gives what it gave. */
export function untilHolds<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: PATIENCE_MS, interval: LOOK_EVERY_MS });
}
