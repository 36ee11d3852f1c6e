import type { Clock } from './clock.ts';

/**
 * Long work beside others, in slices of one event loop turn each. Owns the queue of those who wait to go on.
 *  1. Of all that wait, one goes on per turn of the event loop: forty long jobs hold it no longer at a time than one.
 *  2. They go on in the order in which they came, so each is as far as every other.
 *  3. After a slice, none goes on before a turn of the loop had next to nothing else to do: a request that has begun is
 *     not stopped by a slice at each of its steps. Where there always is something, one goes on after
 *     `MOST_GIVEN_WAY` times as long as the last one took.
 * What a slice does is its owner's to bound: a page of a log, a batch of texts.
 */
export interface Slices {
  /** Resolves when the caller may do its next slice. */
  next(): Promise<void>;
}

/** A turn of the loop that took less had nothing else to do, ms. */
const IDLE_TURN_MS = 0.5;
const MOST_GIVEN_WAY = 4;

export function createSlices(clock: Ticking): Slices {
  const waiting: (() => void)[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    await clock.sleep(0);
    while (waiting.length > 0) {
      waiting.shift()?.();
      const sliceMs = await turn();
      const until = clock.monotonic() + sliceMs * MOST_GIVEN_WAY;
      while ((await turn()) > IDLE_TURN_MS && clock.monotonic() < until);
    }
    isRunning = false;
  }

  /** How long this turn of the loop took, with what was made to go on in it, ms. */
  async function turn(): Promise<number> {
    const began = clock.monotonic();
    await clock.sleep(0);
    return clock.monotonic() - began;
  }

  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        if (!isRunning) void run();
      }),
  };
}

type Ticking = Pick<Clock, 'monotonic' | 'sleep'>;

const QUEUES = new WeakMap<object, Slices>();

/** The one queue of all who have the same clock, which is a process: there is one event loop to share. */
export function slicesOf(clock: Ticking): Slices {
  const known = QUEUES.get(clock);
  if (known) return known;
  const slices = createSlices(clock);
  QUEUES.set(clock, slices);
  return slices;
}

/** For simulations and scripts, which have no one beside them. */
export const WHOLE: Slices = { next: () => Promise.resolve() };
