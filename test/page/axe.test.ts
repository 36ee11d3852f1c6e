import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';
import { endViews, isOpen, playViews, VIEWS } from './views.ts';
import { violations } from './violations.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playViews(made);
  const dispose = made[Symbol.asyncDispose];
  return Object.assign(made, {
    async [Symbol.asyncDispose]() {
      await endViews(made);
      await dispose();
    },
  });
});

const NARROW = { width: 390, height: 844 };

pageTest(
  'axe finds no violation in ten views; in the dark, which changes colours alone, none of contrast',
  async () => {
    const page = await browsing.open(stage().url);
    const found: string[] = [];
    for (const { name, path, shows, begin } of VIEWS) {
      await page.emulateMedia({ colorScheme: 'light' });
      await page.goto(`${stage().url}${path}`);
      await isOpen(page);
      await begin?.(stage());
      await eventually(() => page.locator('body').innerText()).toMatch(shows);
      for (const violation of await violations(page)) found.push(`${name}, light: ${violation}`);
      await page.emulateMedia({ colorScheme: 'dark' });
      for (const violation of await violations(page, 'color-contrast'))
        found.push(`${name}, dark: ${violation}`);
    }
    expect(found).toEqual([]);
  },
);

pageTest('axe finds no violation in the editor of arguments', async () => {
  const page = await browsing.open(`${stage().url}c/headline`, { viewport: NARROW });
  const waiting = page.getByRole('region', { name: 'Waiting for you' });
  await waiting.getByRole('button', { name: 'Change the arguments' }).click();
  await waiting.getByRole('textbox', { name: 'title' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await waiting.getByRole('button', { name: 'Edit as JSON' }).click();
  await waiting.getByRole('textbox', { name: 'JSON' }).fill('{');
  await waiting.getByText('Not JSON').waitFor();
  expect(await violations(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(NARROW.width);
});

pageTest('nothing is wider than a narrow screen, and axe finds no violation there', async () => {
  const page = await browsing.open(stage().url, { viewport: NARROW });
  for (const { name, path } of VIEWS.slice(0, 4)) {
    await page.goto(`${stage().url}${path}`);
    await eventually(() => page.locator('body').innerText()).toMatch(/\S{4,}/);
    await page.waitForTimeout(300);
    expect(await page.evaluate('document.documentElement.scrollWidth'), name).toBeLessThanOrEqual(
      NARROW.width,
    );
    expect(await violations(page), name).toEqual([]);
  }
});

pageTest('users who prefer reduced motion see none', async () => {
  const page = await browsing.open(`${stage().url}c/acme-launch?agent=researcher`, {
    reducedMotion: 'reduce',
  });
  await isOpen(page);
  await VIEWS.find(({ name }) => name === 'live')?.begin?.(stage());
  await eventually(() => page.locator('body').innerText()).toMatch(/streaming/);
  const moving = 'document.getAnimations().filter(({ playState }) => playState === "running").length';
  await eventually(() => page.evaluate(moving)).toBe(0);
});
