import { vi } from 'vitest';

/** Fails a test that waits in vain; far above the normal wait on a slow machine. */
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 10;

/** Retries a check until it no longer throws, and returns its result. */
export function untilHolds<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: PATIENCE_MS, interval: LOOK_EVERY_MS });
}
