import type { Clock } from '../clock.ts';

/** Wakes one who waits; rung while nobody does, it wakes the next one at once. */
export class Bell {
  #rung = false;
  #wake: () => void = () => {};

  ring(): void {
    this.#rung = true;
    this.#wake();
  }

  /** Resolves when it is rung, or after `ms`. */
  async wait(clock: Clock, ms: number): Promise<void> {
    if (!this.#rung && ms > 0) {
      const awake = new AbortController();
      this.#wake = () => awake.abort();
      await clock.sleep(ms, awake.signal);
      this.#wake = () => {};
    }
    this.#rung = false;
  }
}
