import type { Browser } from 'playwright-core';

const SETTLED_MS = 2_000;

/** One request of a load. */
interface Asked {
  /** Below the page's own address, without the hashes of built files. */
  path: string;
  /** On the wire, with headers. */
  bytes: number;
  /** ms after the document was asked for. */
  atMs: number;
}

interface Transfer {
  scripts: number;
  api: number;
  /** With styles, the document and its icon. A stream that is still open counts nothing. */
  all: number;
  asked: Asked[];
}

/** Bytes that a load with an empty cache brings, until nothing more is asked for. */
export async function transferOf(browser: Browser, url: string): Promise<Transfer> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    const asked = new Map<string, Asked>();
    let first: number | null = null;
    devtools.on('Network.requestWillBeSent', ({ requestId, request, timestamp }) => {
      first ??= timestamp;
      const { pathname, search } = new URL(request.url);
      const path = `${pathname}${search}`.replace(/-[\w-]{8}\.(js|css)$/, '.$1');
      asked.set(requestId, { path, bytes: 0, atMs: (timestamp - first) * 1_000 });
    });
    devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const one = asked.get(requestId);
      if (one) one.bytes = encodedDataLength;
    });
    await devtools.send('Network.enable');
    await page.goto(url);
    await page.waitForLoadState('networkidle', { timeout: SETTLED_MS }).catch(() => {});
    const all = [...asked.values()];
    return {
      scripts: bytesOf(all.filter(({ path }) => path.endsWith('.js'))),
      api: bytesOf(all.filter(({ path }) => path.includes('/api/'))),
      all: bytesOf(all),
      asked: all,
    };
  } finally {
    await context.close();
  }
}

function bytesOf(asked: readonly Asked[]): number {
  return asked.reduce((sum, { bytes }) => sum + bytes, 0);
}
