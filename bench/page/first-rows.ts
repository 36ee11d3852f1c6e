import type { Browser } from 'playwright-core';
import { percentile } from '../support.ts';
import { IN_PAGE } from './in-page.ts';

const LOADS = 5;
/** An empty page, loaded in turns with the measured ones. */
const FLOOR = '<!doctype html><title>Floor</title><p class="floor">Nothing.</p>';

export interface FirstRows {
  /** From the request until the frame with the first rows of the asked view is on the screen. */
  ms: number;
  /** The same for an empty page, in the same run. */
  floorMs: number;
  /** The longest task of the page's thread while it loaded; 0 if none was over 50 ms. */
  longestTaskMs: number;
}

/** A network that is far away and narrow. */
export const SLOW: Network = { latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };

interface Network {
  /** Round trip, ms. */
  latency: number;
  /** Bytes a second. */
  downloadThroughput: number;
  uploadThroughput: number;
}

/** The medians of loads with an empty cache. `rows` is the selector of a first row. */
export async function firstRowsOf(
  browser: Browser,
  url: string,
  rows: string,
  network?: Network,
): Promise<FirstRows> {
  const all: number[] = [];
  const floors: number[] = [];
  const tasks: number[] = [];
  for (let load = 0; load < LOADS; load++) {
    floors.push((await measure(browser, url, { rows: '.floor', body: FLOOR })).ms);
    const { ms, longestTaskMs } = await measure(browser, url, { rows, network });
    all.push(ms);
    tasks.push(longestTaskMs);
  }
  return {
    ms: percentile(all, 0.5),
    floorMs: percentile(floors, 0.5),
    longestTaskMs: percentile(tasks, 0.5),
  };
}

interface Load {
  rows: string;
  /** Answers in place of the server. */
  body?: string;
  network?: Network | undefined;
}

async function measure(browser: Browser, url: string, { rows, body, network }: Load) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    if (body !== undefined)
      await page.route(url, (asked) => asked.fulfill({ contentType: 'text/html', body }));
    if (network) {
      const devtools = await context.newCDPSession(page);
      await devtools.send('Network.emulateNetworkConditions', { offline: false, ...network });
    }
    await page.addInitScript(IN_PAGE);
    await page.goto(url);
    const ms = await page.evaluate<number>(`bench.shownAt(${JSON.stringify(rows)})`);
    await page.waitForLoadState('networkidle', { timeout: 2_000 }).catch(() => {});
    return { ms, longestTaskMs: await page.evaluate<number>('bench.longestTask()') };
  } finally {
    await context.close();
  }
}
