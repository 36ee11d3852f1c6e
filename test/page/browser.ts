import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { CHROMIUM_ENV } from '../services/chromium.ts';
import { unusableParts } from '../services/unusable.ts';

/** The browser that `npm test` has found or installed. */
const CHROMIUM = process.env[CHROMIUM_ENV];

export const HAS_CHROMIUM = CHROMIUM !== undefined;
const { Chromium: whyNone } = unusableParts();
const SKIPPED = `skipped: no Chromium${whyNone === undefined ? '' : ` (${whyNone})`}`;

/** A test that needs a browser; skipped with this reason if there is none. */
export function pageTest(name: string, run: () => Promise<void>): void {
  test.skipIf(!HAS_CHROMIUM)(HAS_CHROMIUM ? name : `${name} (${SKIPPED})`, run);
}

/** A costly object that the tests of a file share. It is made only if there is a browser. */
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

/** No sandbox, because tests run as root. The other arguments prevent requests of the browser itself. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** One browser per file. Each page has its own context and is checked for errors, dialogs and foreign requests. */
export interface Browsing {
  open(url: string, options?: BrowserContextOptions): Promise<Page>;
  /** Allows console errors that match: browsers report every failed response there. */
  expectErrors(pattern: RegExp): void;
}

const PATIENCE_MS = 90_000;
/** A look at the words of the page takes 10 ms of CPU, from the page that is waited for. */
const LOOK_MS = 100;
const SIZE = { width: 1280, height: 800 };

export async function launchChromium(path = CHROMIUM): Promise<Browser> {
  // Loaded lazily, since most test runs need no browser.
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

/** The list of turns or events in the middle. */
export function happened(page: Page): Locator {
  return page.getByRole('region', { name: 'What happened' });
}

/** The details of the selection on the right. */
export function detail(page: Page): Locator {
  return page.getByRole('region', { name: 'Detail', exact: true });
}

/** Presses a button of a question or an approval once its place has stood still, and again if it has just moved. */
export async function press(button: Locator): Promise<void> {
  const moved = button.locator('..').getByText('This has just moved.');
  do {
    await button.scrollIntoViewIfNeeded();
    await eventually(() => button.getAttribute('aria-disabled')).toBeNull();
    await button.click();
  } while (await moved.isVisible());
}

/** Polls until the condition holds. */
export function eventually<T>(ask: () => T | Promise<T>): ReturnType<typeof expect.poll<T>> {
  return expect.poll(ask, { timeout: PATIENCE_MS, interval: LOOK_MS });
}

/** Console and thrown errors, dialogs, and requests to other servers. */
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
