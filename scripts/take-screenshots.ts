import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/page/browser.ts';
import { openCopied } from '../test/page/kept-world.ts';
import { SCENES, WORLD_VIEWS, type Picture } from '../test/page/scenes.ts';
import type { PageStage } from '../test/page/stage.ts';
import { isOpen } from '../test/page/views.ts';
import { CHROMIUM_ENV, installChromium } from '../test/services/chromium.ts';
import { runCommand } from '../test/services/run-command.ts';

/**
 * `npm run screenshots`: every view of the built page, in both themes and three widths, to dist/screenshots; those that
 * the docs show also to docs/screenshots. `npm run screenshots -- tree queue` takes these views only, and leaves the
 * docs alone; `-- world`: those of the whole world of `npm run world`. The conversations are replayed with a stopped clock, so that two runs give the same pictures.
 */
const ROOT = path.dirname(import.meta.dirname);
const FOLDER = path.join(ROOT, 'dist/screenshots');
const DOCS = path.join(ROOT, 'docs/screenshots');
const THEMES = ['light', 'dark'] as const;
const WIDTHS = { '-narrow': [390, 844], '': [1280, 800], '-wide': [2560, 1440] } as const;
/** Pictures that the docs show, which the repository keeps. */
const KEPT = /^(prompt|stuck|live|waterfall)-(light|dark)\.png$/;
/** Age of the last event in the pictures, ms. */
const AGO_MS = 2_100;
const DRAWN_WITHIN_MS = 20_000;
const SETTLING_MS = 400;
const COUNTED_WITHIN_MS = 300_000;
const SILENT_MS = 190_000;
const MAX_BYTES = 200 * 1024;
const MAX_TOTAL_BYTES = 2 * 1024 * 1024;
const WALK_MS = 120_000;

const asked = process.argv
  .slice(2)
  .flatMap((name) => (name === 'world' ? WORLD_VIEWS.map((view) => view.name) : [name]));
const known = new Set([...SCENES.flatMap(({ views }) => views), ...WORLD_VIEWS].map(({ name }) => name));
const unknown = asked.filter((name) => !known.has(name));
if (unknown.length > 0) throw new Error(`no such view: ${unknown.join(', ')}`);
const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
if (asked.length === 0) rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const browser = await launchChromium(chromium.path);
try {
  for (const scene of SCENES) {
    const taken = scene.views.filter(({ name }) => asked.length === 0 || asked.includes(name));
    if (taken.length === 0) continue;
    await using stage = await scene.open();
    for (const view of taken) await shoot(browser, { ...stage, begin: () => view.begin?.(stage) }, view);
  }
  const ofWorld = WORLD_VIEWS.filter(({ name }) => asked.includes(name));
  if (ofWorld.length > 0) await shootWorld(ofWorld);
} finally {
  await browser.close();
}
if (asked.length === 0) {
  await walk(chromium.path);
  keep();
}

interface Look {
  colorScheme: (typeof THEMES)[number];
  viewport: { width: number; height: number };
  suffix: string;
}

function looksOf(): Look[] {
  return THEMES.flatMap((colorScheme) =>
    Object.entries(WIDTHS).map(([name, [width, height]]) => ({
      colorScheme,
      viewport: { width, height },
      suffix: `${colorScheme}${name}`,
    })),
  );
}

type Shown = Pick<PageStage, 'url' | 'clock'>;

async function shootWorld(views: readonly Picture[]): Promise<void> {
  await using world = await openCopied();
  const page = await browser.newPage();
  await page.goto(world.url);
  await page.getByRole('region', { name: 'Failed' }).waitFor();
  await page.getByText(/Counting:/).waitFor({ state: 'hidden', timeout: COUNTED_WITHIN_MS });
  await page.close();
  // A model that says nothing is stuck after three minutes.
  world.clock.ahead(SILENT_MS);
  for (const view of views) await shoot(browser, world, view);
}

async function shoot(
  by: Browser,
  stage: Shown & { begin?: () => Promise<void> | undefined },
  view: Picture,
): Promise<void> {
  const open: { page: Page; suffix: string }[] = [];
  for (const look of looksOf())
    open.push({ page: await openPage(by, stage, view, look), suffix: look.suffix });
  await stage.begin?.();
  for (const { page, suffix } of open) {
    await drawn(page, view);
    await view.act?.(page);
    await wait(SETTLING_MS);
    await page.screenshot({
      path: path.join(FOLDER, `${view.name}-${suffix}.png`),
      animations: 'disabled',
    });
    await page.context().close();
  }
}

async function openPage(by: Browser, stage: Shown, view: Picture, look: Look): Promise<Page> {
  const { suffix: _, ...options } = look;
  const context = await by.newContext({
    ...options,
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(stage.clock.now() + AGO_MS);
  await view.before?.(page);
  await page.goto(`${stage.url}${view.path}`);
  if (view.isLive !== false) await isOpen(page);
  return page;
}

/** On a narrow screen the text may be in a hidden column, which is rendered all the same. */
async function drawn(page: Page, { name, shows }: Picture): Promise<void> {
  const deadline = Date.now() + DRAWN_WITHIN_MS;
  while (!shows.test((await page.locator('body').textContent()) ?? '')) {
    if (Date.now() > deadline) throw new Error(`${name} does not show ${shows}`);
    await wait(SETTLING_MS / 4);
  }
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

function keep(): void {
  rmSync(DOCS, { recursive: true, force: true });
  mkdirSync(DOCS, { recursive: true });
  const all = readdirSync(FOLDER);
  const files = all
    .filter((file) => KEPT.test(file))
    .map((file) => ({ file, bytes: statSync(path.join(FOLDER, file)).size }));
  for (const { file } of files) copyFileSync(path.join(FOLDER, file), path.join(DOCS, file));
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { file, bytes } of files) console.log(`${file.padEnd(32)} ${Math.ceil(bytes / 1024)} KiB`);
  console.log(
    `${all.length} pictures in dist/screenshots, ${files.length} kept, ${(total / 1024 / 1024).toFixed(1)} MiB`,
  );
  const large = files.filter(({ bytes }) => bytes > MAX_BYTES).map(({ file }) => file);
  if (large.length > 0 || total > MAX_TOTAL_BYTES) {
    console.error(`too large: ${large.join(', ') || 'all of them together'}`);
    process.exitCode = 1;
  }
}
