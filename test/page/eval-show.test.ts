import { expect } from 'vitest';
import * as evals from '../../packages/evals/src/command.ts';
import { createEvalApp } from '../../src/cli/evals/eval-app.ts';
import { createOpenRuns } from '../../src/cli/evals/open-runs.ts';
import { readShownScores } from '../../src/cli/evals/page-frame.ts';
import { serveHttp } from '../../src/http/api/index.ts';
import { ResourceStack } from '../../src/base/resource-stack.ts';
import { keptScores } from '../support/kept-scores.ts';
import { happened, pageTest, shared, useBrowser } from './browser.ts';
import { violations } from './violations.ts';

const browsing = useBrowser();
const pages = shared(async () => {
  const opened = new ResourceStack();
  const kept = await keptScores(2);
  opened.defer(() => kept[Symbol.dispose]());
  const runs = opened.use(createOpenRuns(evals));
  const server = await serveHttp(createEvalApp(readShownScores(evals, kept.after, kept.before), runs), {
    port: 0,
  });
  opened.defer(() => server.close());
  return { url: `${server.url}/`, [Symbol.asyncDispose]: () => opened.close() };
});

pageTest(
  'a score that does not hold leads to the run beside its baseline, and a line to its event',
  async () => {
    const page = await browsing.open(pages().url);
    await page.getByRole('link', { name: 'Failed in a run (1)' }).press('Enter');
    await page.getByRole('link', { name: 'run 2: ✗ does not hold' }).click();
    await page.getByRole('heading', { name: /: run 2$/ }).waitFor();
    // The heading is there before the rows below it.
    await page.waitForLoadState();
    const differing = page.getByRole('listitem').filter({ hasText: 'differs' }).last();
    expect(await differing.locator('del').allInnerTexts()).toEqual(['Monday']);
    expect((await differing.locator('ins').allInnerTexts()).join(' ')).toMatch(/^Friday .*<script>/);
    const boxes = await differing.getByRole('link', { name: '@desk' }).all();
    const [before, after] = await Promise.all(boxes.map((link) => link.boundingBox()));
    expect(after).toMatchObject({ y: before!.y });
    expect(after!.x).toBeGreaterThan(before!.x + before!.width);
    await boxes[1]!.click();
    await happened(page).getByText('It comes on Friday.').waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/after\//);
    await page.getByPlaceholder('This server is read-only').waitFor();
    expect(await page.evaluate('"__xss" in window')).toBe(false);
  },
);

pageTest(
  'a result in the matrix leads to a run that fails, and from there back to its scenario',
  async () => {
    const page = await browsing.open(pages().url);
    const matrix = page.getByRole('table', { name: 'The worst first' });
    await matrix.getByRole('link', { name: '0 · 2 of 2 fail' }).click();
    await page.getByRole('heading', { name: /: run 1$/ }).waitFor();
    await page.getByRole('link', { name: 'All scores' }).click();
    await matrix.waitFor();
    expect(await page.locator(':target').getByRole('heading', { level: 2 }).innerText()).toMatch(/^a parcel/);
  },
);

pageTest('the pages fit from 390 to 2560 px, and axe finds no violation in either theme', async () => {
  const page = await browsing.open(pages().url);
  const run = await page.getByRole('link', { name: 'run 1: ✗ does not hold' }).getAttribute('href');
  const found: string[] = [];
  for (const to of [
    '',
    run!.slice(1),
    `${run!.slice(1)}&lines=changed`,
    run!.slice(1).replace('run?', 'runs?'),
  ]) {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(pages().url + to);
    for (const width of [390, 800, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      expect(
        await page.evaluate('document.documentElement.scrollWidth'),
        `${to} at ${width}`,
      ).toBeLessThanOrEqual(width);
    }
    for (const violation of await violations(page)) found.push(`${to}, light: ${violation}`);
    await page.emulateMedia({ colorScheme: 'dark' });
    for (const violation of await violations(page, 'color-contrast')) found.push(`${to}, dark: ${violation}`);
  }
  expect(found).toEqual([]);
});
