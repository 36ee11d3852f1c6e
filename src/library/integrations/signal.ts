import type { Clock } from '../../base/clock.ts';

/** Wakes one waiter. Raised without a waiter, it ends the next wait at once. */
export class Signal {
  #isRaised = false;
  #wake: () => void = () => {};

  /** Wakes who waits for it. */
  raise(): void {
    this.#isRaised = true;
    this.#wake();
  }

  /** Resolves when the signal is raised, or after `ms`. */
  async wait(clock: Clock, ms: number): Promise<void> {
    if (!this.#isRaised && ms > 0) {
      const awake = new AbortController();
      this.#wake = () => awake.abort();
      await clock.sleep(ms, awake.signal, 'upkeep');
      this.#wake = () => {};
    }
    this.#isRaised = false;
  }
}
