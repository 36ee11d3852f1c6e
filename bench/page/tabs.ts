import type { Browser } from 'playwright-core';

const SEEN = 'Do all the tabs work?';

/** Milliseconds from Enter to the words in the last of so many tabs of one browser, which all show conversations. */
export async function tabsOf(browser: Browser, url: string, count: number): Promise<number> {
  const context = await browser.newContext();
  try {
    let last = await context.newPage();
    for (let n = 0; n < count; n += 1) {
      if (n > 0) last = await context.newPage();
      await last.goto(`${url}c/${n === count - 1 ? 'live' : `order-0${1_000 + n}`}`);
      await last.locator('.words').first().waitFor();
    }
    await last.getByPlaceholder(/^Message/).fill(SEEN);
    const began = Date.now();
    await last.keyboard.press('Enter');
    await last.locator('.words').filter({ hasText: SEEN }).waitFor();
    return Date.now() - began;
  } finally {
    await context.close();
  }
}
