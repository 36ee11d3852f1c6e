import type { Clock } from './clock.ts';

/**
 * Splits long work into slices, so that it does not block the event loop. Owns the queue of the waiting jobs.
 *  1. One job runs one slice per turn of the event loop: forty long jobs block it for no longer at a time than one does.
 *  2. Jobs take turns in the order in which they came, so all progress evenly.
 *  3. After a slice, the next one waits for an idle turn of the loop: otherwise a short request would wait for a slice at
 *     each of its steps. If the loop is never idle, the wait ends after `MOST_GIVEN_WAY` times the last slice.
 * The caller limits the size of its slices, for example to a page of a log or a batch of texts.
 */
export interface Slices {
  /** Resolves when the caller may do its next slice. */
  next(): Promise<void>;
}

/** A turn of the loop up to this long counts as idle, ms. */
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

  /** Duration of this turn of the loop, including a slice that it began, ms. */
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

/** The queue of a clock. A process has one clock, and its jobs share one event loop. */
export function slicesOf(clock: Ticking): Slices {
  const known = QUEUES.get(clock);
  if (known) return known;
  const slices = createSlices(clock);
  QUEUES.set(clock, slices);
  return slices;
}

/** Never waits: for simulations and scripts, which run alone. */
export const WHOLE: Slices = { next: () => Promise.resolve() };

const SHARED_MS = 10_000;

/** Whether tenants share a process: different tenants had work here within the last `SHARED_MS`. */
export function createSharing(clock: Pick<Clock, 'monotonic'>) {
  let last: string | null = null;
  let until = Number.NEGATIVE_INFINITY;
  return {
    /** Records that the tenant has work here. */
    note(tenant: string): void {
      if (tenant === last) return;
      if (last !== null) until = clock.monotonic() + SHARED_MS;
      last = tenant;
    },
    isShared: (): boolean => clock.monotonic() < until,
  };
}
