import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { playCompacted, playFailed, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'failed');
  await playIdle(made, 'idle');
  await playCompacted(made, 'compacted');
  return made;
});

const SETTLING_MS = 120;

/** The text of the page, once it no longer changes. */
async function settled(page: Page, shows: RegExp): Promise<string> {
  let before = '';
  await eventually(async () => {
    await page.waitForTimeout(SETTLING_MS);
    const now = await page.locator('body').innerText();
    const isSame = now === before && shows.test(now);
    before = now;
    return isSame;
  }).toBe(true);
  return before;
}

const VIEWS: [what: string, path: string, shows: RegExp][] = [
  ['a turn', 'c/failed/t/failed:researcher:2', /Researcher[^]*turn 2/],
  ['a prompt', 'c/failed/t/failed:researcher:2?tab=prompt', /of 32,000 tokens/],
  ['one model call of a turn', 'c/failed/t/failed:researcher:2?tab=prompt&step=1', /of 32,000 tokens/],
  [
    'a diff of two turns',
    'c/failed/t/failed:researcher:2?tab=diff&vs=failed:researcher:1',
    /\+4,\d{3} tokens[^]*history/,
  ],
  ['an agent', 'c/idle?agent=critic', /Critic/],
  ['an event', 'c/failed?list=events&kind=*&event=10&tab=raw', /read_report/],
  ['a filter', 'c/idle?list=events&kind=talk&by=critic', /Nobody has said when it begins/],
  ['a moment', 'c/failed?at=12', /The past\./],
  ['compactions', 'c/compacted?kind=context', /Archivist made room/],
];

for (const [what, path, shows] of VIEWS) {
  pageTest(`${what} has an address: opened anew or reloaded, it is the same view`, async () => {
    const page = await browsing.open(stage().url + path);
    // On a busy machine the page may pause before it is complete.
    await eventually(async () => {
      const words = await settled(page, shows);
      await page.reload();
      if (words === (await settled(page, shows))) return true;
      await page.goto(stage().url + path);
      return words;
    }).toBe(true);
  });
}

pageTest('the address follows every click, and Back returns to the view before', async () => {
  const page = await browsing.open(`${stage().url}c/failed?list=turns`);
  await page.getByRole('link', { name: /Researcher.*read_report/ }).click();
  await page.getByRole('tab', { name: 'Prompt' }).click();
  await page.getByText('of 32,000 tokens').waitFor();
  const { pathname, searchParams } = new URL(page.url());
  expect(decodeURIComponent(pathname)).toBe('/c/failed/t/failed:researcher:2');
  expect(searchParams.get('tab')).toBe('prompt');
  const other = await browsing.open(page.url());
  await other.getByText('of 32,000 tokens').waitFor();
  await page.goBack();
  await page.goBack();
  await eventually(() => new URL(page.url()).pathname).toBe('/c/failed');
});

pageTest('a link to a deleted conversation leads to a page with an explanation and a search', async () => {
  await playIdle(stage(), 'gone');
  await stage().troupe.delete('gone', { exported: 'none' });
  browsing.expectErrors(/404/);
  const page = await browsing.open(`${stage().url}c/gone/t/gone:critic:1?tab=prompt`);
  await page.getByRole('heading', { name: 'There is no conversation “gone”' }).waitFor();
  await page.getByRole('searchbox', { name: 'Search all conversations' }).fill('tariff took 4 %');
  await page.getByRole('link', { name: /The old tariff took 4 % of every crate/ }).click();
  await page.getByRole('region', { name: 'Agents' }).getByText('Researcher').waitFor();
  expect(decodeURIComponent(new URL(page.url()).pathname)).toMatch(/^\/c\/idle/);
});

pageTest('a link to a missing turn or event leaves the rest of the page readable', async () => {
  browsing.expectErrors(/404/);
  const page = await browsing.open(stage().url);
  for (const path of [
    'c/failed/t/failed:nobody:7?tab=prompt',
    'c/failed?event=999&tab=raw',
    'c/failed?at=9999',
  ]) {
    await page.goto(`${stage().url}${path}`);
    await eventually(() => page.getByRole('region', { name: 'Agents' }).innerText()).toMatch(/Writer/);
  }
});

pageTest('an unknown API path is answered with 404', async () => {
  const response = await fetch(`${stage().url}api/no-such-thing`, { headers: { accept: 'text/html' } });
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { code: 'route_unknown' } });
});
