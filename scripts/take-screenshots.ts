import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/page/browser.ts';
import { SCENES, type Picture } from '../test/page/scenes.ts';
import type { PageStage } from '../test/page/stage.ts';
import { isOpen } from '../test/page/views.ts';
import { CHROMIUM_ENV, installChromium } from '../test/services/chromium.ts';
import { runCommand } from '../test/services/run-command.ts';

/**
 * `npm run screenshots`: every view of the built page, in both themes and three widths, to dist/screenshots; those that
 * the docs show also to docs/screenshots. `npm run screenshots -- tree queue` takes these views only, and leaves the
 * docs alone. The conversations are replayed with a stopped clock, so that two runs give the same pictures.
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
const MAX_BYTES = 200 * 1024;
const MAX_TOTAL_BYTES = 2 * 1024 * 1024;
const WALK_MS = 120_000;

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !SCENES.some(({ views }) => views.some((view) => view.name === name)));
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
    for (const view of taken) await shoot(browser, stage, view);
  }
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

async function shoot(by: Browser, stage: PageStage, view: Picture): Promise<void> {
  const open: { page: Page; suffix: string }[] = [];
  for (const look of looksOf())
    open.push({ page: await openPage(by, stage, view, look), suffix: look.suffix });
  await view.begin?.(stage);
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

async function openPage(by: Browser, stage: PageStage, view: Picture, look: Look): Promise<Page> {
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
