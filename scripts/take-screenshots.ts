import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/page/browser.ts';
import { CROWD, playCrowd } from '../test/page/crowd.ts';
import { OFFICE } from '../test/page/office.ts';
import { openStage, type PageStage } from '../test/page/stage.ts';
import { endViews, isOpen, playViews, VIEWS, type View } from '../test/page/views.ts';
import { CHROMIUM_ENV, installChromium } from '../test/services/chromium.ts';
import { runCommand } from '../test/services/run-command.ts';

/**
 * `npm run screenshots`: the built page, in both themes, wide and narrow, to docs/screenshots. The conversations are
 * replayed with a stopped clock, so that two runs give the same pictures.
 */
const ROOT = path.dirname(import.meta.dirname);
const FOLDER = path.join(ROOT, 'docs/screenshots');
const THEMES = ['light', 'dark'] as const;
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 844 };
const NARROW_VIEWS = ['conversations', 'live', 'failed', 'prompt'];
/** In one theme only, to keep the total size small. */
const CROWD_VIEW: View = { name: 'crowd', path: 'c/crowd', shows: /Agent 37/ };
/** Age of the last event in the pictures, ms. */
const AGO_MS = 2_100;
const DRAWN_WITHIN_MS = 20_000;
const SETTLING_MS = 400;
const MAX_BYTES = 200 * 1024;
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;
const WALK_MS = 120_000;

const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const browser = await launchChromium(chromium.path);
try {
  await using office = await openStage(OFFICE);
  await playViews(office);
  await shootAll(browser, office, VIEWS);
  await endViews(office);
  await using crowd = await openStage(CROWD);
  await playCrowd(crowd, 'crowd');
  await shootAll(browser, crowd, [CROWD_VIEW]);
} finally {
  await browser.close();
}
await walk(chromium.path);
printSizes();

interface Look {
  colorScheme: (typeof THEMES)[number];
  viewport: { width: number; height: number };
  suffix: string;
}

function looksOf(view: View): Look[] {
  const { name } = view;
  const themes = view === CROWD_VIEW ? THEMES.slice(0, 1) : THEMES;
  return themes.flatMap((colorScheme) => [
    { colorScheme, viewport: WIDE, suffix: colorScheme },
    ...(NARROW_VIEWS.includes(name)
      ? [{ colorScheme, viewport: NARROW, suffix: `${colorScheme}-narrow` }]
      : []),
  ]);
}

async function shootAll(by: Browser, stage: PageStage, views: readonly View[]): Promise<void> {
  for (const view of views) {
    const open: { page: Page; suffix: string }[] = [];
    for (const look of looksOf(view))
      open.push({ page: await openPage(by, stage, view, look), suffix: look.suffix });
    await view.begin?.(stage);
    for (const { page, suffix } of open) {
      await drawn(page, view);
      await page.screenshot({
        path: path.join(FOLDER, `${view.name}-${suffix}.png`),
        animations: 'disabled',
      });
      await page.context().close();
    }
  }
}

async function openPage(by: Browser, stage: PageStage, view: View, look: Look): Promise<Page> {
  const { suffix: _, ...options } = look;
  const context = await by.newContext({
    ...options,
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(stage.clock.now() + AGO_MS);
  await page.goto(`${stage.url}${view.path}`);
  await isOpen(page);
  return page;
}

/** On a narrow screen the text may be in a hidden column, which is rendered all the same. */
async function drawn(page: Page, { name, shows }: View): Promise<void> {
  const deadline = Date.now() + DRAWN_WITHIN_MS;
  while (!shows.test((await page.locator('body').textContent()) ?? '')) {
    if (Date.now() > deadline) throw new Error(`${name} does not show ${shows}`);
    await wait(SETTLING_MS / 4);
  }
  await wait(SETTLING_MS);
}

/** The test of the walkthrough takes these pictures. */
async function walk(chromiumPath: string): Promise<void> {
  const vitest = path.join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'embedded', 'test/page/walk.test.ts'];
  const env = { ...process.env, [CHROMIUM_ENV]: chromiumPath, TROUPE_WALK_PICTURES: FOLDER };
  const { ok, reason, stdout } = await runCommand(process.execPath, args, {
    cwd: ROOT,
    env,
    timeoutMs: WALK_MS,
  });
  if (!ok) throw new Error(`the walk failed: ${reason}\n${stdout}`);
}

function printSizes(): void {
  const files = readdirSync(FOLDER).map((file) => ({ file, bytes: statSync(path.join(FOLDER, file)).size }));
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { file, bytes } of files) console.log(`${file.padEnd(32)} ${Math.ceil(bytes / 1024)} KiB`);
  console.log(`${files.length} pictures, ${(total / 1024 / 1024).toFixed(1)} MiB`);
  const large = files.filter(({ bytes }) => bytes > MAX_BYTES).map(({ file }) => file);
  if (large.length > 0 || total > MAX_TOTAL_BYTES) {
    console.error(`too large: ${large.join(', ') || 'all of them together'}`);
    process.exitCode = 1;
  }
}
