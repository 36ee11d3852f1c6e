import type { Browser } from 'playwright-core';
import { percentile } from '../support.ts';
import { IN_PAGE } from './in-page.ts';

const LOADS = 5;

/** Milliseconds from the request to the first text on the screen: the median of loads with an empty cache. */
export async function firstPaintMs(browser: Browser, url: string): Promise<number> {
  const times: number[] = [];
  for (let load = 0; load < LOADS; load++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(url);
    await page.evaluate(IN_PAGE);
    times.push(await page.evaluate<number>('bench.paintedAt()'));
    await context.close();
  }
  return percentile(times, 0.5);
}
