import type { Page } from 'playwright-core';
import type { Scrolling } from './scrolling.ts';
import { IN_PAGE } from './in-page.ts';

const FRAMES = 240;

/** Zooms the timeline of the page from all that there is to a few events and back. */
export async function zoom(page: Page): Promise<Omit<Scrolling, 'distance'>> {
  await page.evaluate(IN_PAGE);
  // What is not loaded is not drawn.
  const all = page.getByRole('button', { name: 'Show the whole conversation' });
  if (await all.isEnabled()) await all.click();
  await page.waitForLoadState('networkidle', { timeout: 10_000 }).catch(() => {});
  return page.evaluate(`bench.zoomTimeline(${FRAMES})`);
}
