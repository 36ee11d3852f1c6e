import type { Page } from 'playwright-core';
import { IN_PAGE } from './in-page.ts';

const FRAMES = 1_200;

export interface Scrolling {
  /** The longest and the median time between two frames, ms. */
  longestMs: number;
  usualMs: number;
  /** Number of frames over 50 ms, and of all frames. */
  long: number;
  frames: number;
  /** Distance scrolled, px. */
  distance: number;
}

/** Scrolls the longest list of the page to its end and back, frame by frame, as fast as a hand would. */
export async function scroll(page: Page): Promise<Scrolling> {
  await page.evaluate(IN_PAGE);
  return page.evaluate<Scrolling>(`bench.scrollLongest(${FRAMES})`);
}
