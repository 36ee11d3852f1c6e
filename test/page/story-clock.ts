import { type Clock, systemClock } from '../../src/base/clock.ts';

/** Start of every story: a Monday morning. */
export const STORY_BEGINS = Date.UTC(2026, 4, 4, 9, 0);

/** Wall time moves only on demand, so that every run shows the same. Sleeping takes real time. */
export interface StoryClock extends Clock {
  pass(ms: number): void;
}

export function createStoryClock(begin = STORY_BEGINS): StoryClock {
  let now = begin;
  return { ...systemClock, now: () => now, pass: (ms) => (now += ms) };
}
