import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { CHROMIUM_ENV } from '../services/chromium.ts';

/** What `npm test` has found or installed. */
const CHROMIUM = process.env[CHROMIUM_ENV];

export const HAS_CHROMIUM = CHROMIUM !== undefined;

/** A test that needs a browser, and says so where there is none. */
export function pageTest(name: string, run: () => Promise<void>): void {
  test.skipIf(!HAS_CHROMIUM)(HAS_CHROMIUM ? name : `${name} (skipped: no Chromium)`, run);
}

/** Something costly that the tests of a file share; made only where there is a browser. */
export function shared<T extends AsyncDisposable>(make: () => Promise<T>): () => T {
  let made: T | null = null;
  beforeAll(async () => {
    if (HAS_CHROMIUM) made = await make();
  });
  afterAll(async () => made?.[Symbol.asyncDispose]());
  return () => {
    if (!made) throw new Error('not made yet');
    return made;
  };
}

/** No sandbox: tests run as root. The others keep it from talking to anybody. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** One browser for a file; every page in a context of its own, watched for what no page of ours may do. */
export interface Browsing {
  open(url: string, options?: BrowserContextOptions): Promise<Page>;
  /** Of what is known to be answered with an error: the console of a browser tells each such response. */
  expectErrors(pattern: RegExp): void;
}

const PATIENCE_MS = 30_000;
const SIZE = { width: 1280, height: 800 };

export async function launchChromium(path = CHROMIUM): Promise<Browser> {
  // Loaded here: most test runs need no browser.
  const { chromium } = await import('playwright-core');
  if (path === undefined) throw new Error(`${CHROMIUM_ENV} is not set: run through npm test`);
  return chromium.launch({ executablePath: path, args: CHROMIUM_ARGS });
}

export function useBrowser(): Browsing {
  let browser: Browser | null = null;
  let faults: string[] = [];
  let allowed: RegExp[] = [];

  beforeAll(async () => {
    if (HAS_CHROMIUM) browser = await launchChromium();
  });
  afterAll(async () => browser?.close());
  afterEach(async () => {
    await Promise.all(browser?.contexts().map((context) => context.close()) ?? []);
    const found = faults.filter((fault) => !allowed.some((pattern) => pattern.test(fault)));
    faults = [];
    allowed = [];
    expect(found).toEqual([]);
  });

  return {
    async open(url, options = {}) {
      if (!browser) throw new Error('no browser');
      const context = await browser.newContext({ viewport: SIZE, ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      watch(page, new URL(url).origin, faults);
      await page.goto(url);
      return page;
    },
    expectErrors(pattern) {
      allowed.push(pattern);
    },
  };
}

/** The list in the middle: turns or events. */
export function happened(page: Page): Locator {
  return page.getByRole('region', { name: 'What happened' });
}

/** The right: what is chosen. */
export function detail(page: Page): Locator {
  return page.getByRole('region', { name: 'Detail', exact: true });
}

/** Asks again until it holds. */
export function eventually<T>(ask: () => T | Promise<T>) {
  return expect.poll(ask, { timeout: PATIENCE_MS, interval: 30 });
}

/** Errors on the console or thrown, dialogs, and requests to anybody but the server. */
function watch(page: Page, origin: string, faults: string[]): void {
  page.on('pageerror', (error) => faults.push(`thrown: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') {
      faults.push(`console: ${message.text()} ${message.location().url}`);
    }
  });
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`request: ${request.url()}`);
  });
}
