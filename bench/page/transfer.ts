import type { Browser } from 'playwright-core';

const SETTLED_MS = 2_000;

interface Transfer {
  /** Bytes on the wire, with headers. */
  scripts: number;
  api: number;
  /** With styles, the document and its icon. A stream that is still open counts nothing. */
  all: number;
}

/** Bytes that a load with an empty cache brings, until nothing more is asked for. */
export async function transferOf(browser: Browser, url: string): Promise<Transfer> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    const urls = new Map<string, string>();
    const sum: Transfer = { scripts: 0, api: 0, all: 0 };
    devtools.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url));
    devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const { pathname } = new URL(urls.get(requestId) ?? url);
      sum.all += encodedDataLength;
      if (pathname.includes('/api/')) sum.api += encodedDataLength;
      if (pathname.endsWith('.js')) sum.scripts += encodedDataLength;
    });
    await devtools.send('Network.enable');
    await page.goto(url);
    await page.waitForLoadState('networkidle', { timeout: SETTLED_MS }).catch(() => {});
    return sum;
  } finally {
    await context.close();
  }
}
