import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { HOSTILE, HOSTILE_ID, MARKUP, playHostile } from './hostile.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(HOSTILE);
  await playHostile(made);
  return made;
});

const TURN = `${HOSTILE_ID}:constructor:1`;
const FAILED = `${HOSTILE_ID}:constructor:2`;
const VIEWS = [
  '',
  `c/${HOSTILE_ID}`,
  `c/${HOSTILE_ID}?list=events&kind=*`,
  `c/${HOSTILE_ID}/t/${TURN}?tab=prompt`,
  `c/${HOSTILE_ID}/t/${FAILED}?tab=diff`,
  `c/${HOSTILE_ID}/t/${TURN}?tab=tools`,
  `c/${HOSTILE_ID}/t/${TURN}?tab=events`,
  `c/${HOSTILE_ID}?event=1&tab=raw`,
  `c/${HOSTILE_ID}/t/${FAILED}?tab=state`,
];

/** Elements that working markup would create: an image, a foreign script, a link that runs code. */
const INJECTED =
  'img, iframe, body script, [onerror], [onload], [onclick], a[href^="javascript:" i], svg[onload]';

async function expectUnharmed(page: Page, view: string): Promise<void> {
  expect(await page.evaluate('window.__xss'), view).toBeUndefined();
  expect(await page.locator(INJECTED).count(), view).toBe(await page.locator('body > script[src]').count());
}

pageTest(
  'markup in names, messages, arguments, outputs and errors is shown as text, in every view',
  async () => {
    const page = await browsing.open(stage().url);
    for (const view of VIEWS) {
      await page.goto(`${stage().url}${view}`);
      await eventually(() => page.locator('body').innerText()).toMatch(
        view === '' ? /constructor/ : /Mallory/,
      );
      await page.evaluate('document.querySelectorAll("details").forEach((each) => (each.open = true))');
      await expectUnharmed(page, view);
    }
  },
);

pageTest('an agent whose name is markup is shown with its full name', async () => {
  const page = await browsing.open(`${stage().url}c/${HOSTILE_ID}`);
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByText(`Mallory ${MARKUP}`).waitFor();
  expect(await agents.getByRole('listitem').count()).toBe(1);
});

pageTest('a search for markup and an address with markup show text', async () => {
  const page = await browsing.open(stage().url);
  await page.getByRole('searchbox', { name: 'Search all conversations' }).fill('onerror');
  await page.getByText(/\d+ hits? in 1 conversation/).waitFor();
  await expectUnharmed(page, 'search');
  browsing.expectErrors(/404|400/);
  const markup = encodeURIComponent(MARKUP);
  const other = await browsing.open(
    `${stage().url}c/${HOSTILE_ID}/t/${markup}?agent=${markup}&q=${markup}&kind=${markup}&by=${markup}&vs=${markup}`,
  );
  await eventually(() => other.locator('body').innerText()).toMatch(/Mallory/);
  await expectUnharmed(other, 'address');
});

pageTest('the exported page shows markup as text, too', async () => {
  const response = await fetch(
    `${stage().url}api/conversations/${encodeURIComponent(HOSTILE_ID)}/export?format=html`,
  );
  const html = await response.text();
  expect(response.status).toBe(200);
  const page = await browsing.open('about:blank');
  await page.setContent(html);
  await eventually(() => page.locator('body').innerText()).toContain('Mallory');
  expect(await page.evaluate('window.__xss')).toBeUndefined();
  expect(await page.locator('img, iframe, [onerror], [onload], [onclick]').count()).toBe(0);
});
