import { type Clock, systemClock } from '../../src/clock.ts';

/** When every story begins: a Monday morning. */
export const STORY_BEGINS = Date.UTC(2026, 4, 4, 9, 0);

/** Wall time moves only when the story says so, so that two runs show the same; waiting takes real time. */
export interface StoryClock extends Clock {
  pass(ms: number): void;
}

export function createStoryClock(begin = STORY_BEGINS): StoryClock {
  let now = begin;
  return { ...systemClock, now: () => now, pass: (ms) => (now += ms) };
}
