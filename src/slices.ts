/**
 * Long work beside others, in slices of one event loop turn each. Owns the queue of those who wait to go on.
 *  1. Of all that wait, one goes on per turn of the event loop: forty long jobs hold it no longer at a time than one.
 *  2. They go on in the order in which they came, so each is as far as every other.
 * What a slice does is its owner's to bound: a page of a log, a batch of texts.
 */
export interface Slices {
  /** Resolves when the caller may do its next slice. */
  next(): Promise<void>;
}

/** `turn` resolves in the next turn of the event loop, as `clock.sleep(0)`. */
export function createSlices(turn: () => Promise<void>): Slices {
  const waiting: (() => void)[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      await turn();
      waiting.shift()?.();
    }
    isRunning = false;
  }

  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        if (!isRunning) void run();
      }),
  };
}

const QUEUES = new WeakMap<object, Slices>();

/** The one queue of all who have the same clock, which is a process: there is one event loop to share. */
export function slicesOf(clock: { sleep(ms: number): Promise<void> }): Slices {
  const known = QUEUES.get(clock);
  if (known) return known;
  const slices = createSlices(() => clock.sleep(0));
  QUEUES.set(clock, slices);
  return slices;
}

/** For simulations and scripts, which have no one beside them. */
export const WHOLE: Slices = { next: () => Promise.resolve() };
