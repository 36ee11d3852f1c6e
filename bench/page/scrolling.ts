import type { Page } from 'playwright-core';
import { IN_PAGE } from './in-page.ts';

const FRAMES = 1_200;

export interface Scrolling {
  /** The longest time between two frames, and that between most of them, ms. */
  longestMs: number;
  usualMs: number;
  /** Frames over 50 ms, of so many. */
  long: number;
  frames: number;
  /** How far it was scrolled, px. */
  distance: number;
}

/** Scrolls the longest list of the page from end to end and back, as fast as a hand would, frame by frame. */
export async function scroll(page: Page): Promise<Scrolling> {
  await page.evaluate(IN_PAGE);
  return page.evaluate<Scrolling>(`bench.scrollLongest(${FRAMES})`);
}
