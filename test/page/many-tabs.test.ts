import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually, happened, pageTest, press, shared, useBrowser } from './browser.ts';
import { playApproval } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';
import { isOpen } from './views.ts';

/** More than three times the connections that a browser opens to one server. */
const TABS = 20;

const browsing = useBrowser();
const stage = shared(() => openStage(OFFICE));

pageTest('twenty tabs at once open, show what happens, and act', async () => {
  for (let tab = 1; tab <= TABS; tab += 1) await stage().say(`tab-${tab}`, [], `About parcel ${tab}.`);
  await playApproval(stage(), `tab-${TABS}`);
  const first = await browsing.open(`${stage().url}c/tab-1`);
  const tabs: Page[] = [first];
  for (let tab = 2; tab <= TABS; tab += 1) {
    const page = await first.context().newPage();
    await page.goto(`${stage().url}c/tab-${tab}`);
    tabs.push(page);
  }
  for (const page of tabs) await isOpen(page);
  for (let tab = 1; tab <= TABS; tab += 1) await stage().say(`tab-${tab}`, [], `And the crate ${tab}.`);
  for (const [index, page] of tabs.entries())
    await happened(page)
      .getByText(`And the crate ${index + 1}.`)
      .first()
      .waitFor();
  const last = tabs.at(-1)!;
  await press(last.getByRole('button', { name: 'Approve' }));
  await happened(last).getByText('It is out.').first().waitFor();
  // Most of them have no stream of their own.
  const locks = await first.evaluate('navigator.locks.query().then(({ held }) => held.length)');
  expect(locks).toBe(3);
});

pageTest('a tab without a stream shows at once what it has sent', async () => {
  await stage().say('crowded', [], 'About parcel 1.');
  const page = await browsing.open(stage().url);
  // The other tabs of the browser have all places.
  await page.evaluate(`
    for (const place of [1, 2, 3]) void navigator.locks.request('troupe-stream-' + place, () => new Promise(() => {}));
    true;
  `);
  const tab = await page.context().newPage();
  await tab.goto(`${stage().url}c/crowded`);
  await isOpen(tab);
  await tab.clock.install();
  // The pause that was running ends by the clock of the machine.
  await tab.waitForResponse(/events\?after=/);
  await tab.clock.pauseAt(Date.now() + 60_000);
  // What the tab has asked before the clock stopped is answered.
  await tab.waitForLoadState('networkidle');
  await tab.getByPlaceholder(/^Message/).fill('And the crate 1.');
  await tab.keyboard.press('Enter');
  await happened(tab).getByText('And the crate 1.').first().waitFor();
});

pageTest('a command that does not come back says so within seconds', async () => {
  await playApproval(stage(), 'silent');
  const page = await browsing.open(`${stage().url}c/silent`);
  await page.clock.install();
  await page.route('**/api/commands', () => {});
  const asked = page.waitForRequest('**/api/commands');
  await press(page.getByRole('button', { name: 'Approve' }));
  await asked;
  await page.clock.fastForward(10_000);
  await eventually(() => page.getByRole('region', { name: 'Waiting for you' }).innerText()).toContain(
    'has not answered for 10 s; whether it has done this is not known',
  );
});

pageTest('a hidden tab gives its stream back, and goes on from its last event when it is seen', async () => {
  await stage().say('dozing', [], 'About parcel 1.');
  const page = await browsing.open(`${stage().url}c/dozing`);
  await isOpen(page);
  const streams = () => page.evaluate<number>('navigator.locks.query().then(({ held }) => held.length)');
  const turn = (state: string) =>
    page.evaluate(`
      Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    `);
  await eventually(streams).toBe(1);
  await page.clock.install();
  await turn('hidden');
  await page.clock.fastForward(10_000);
  await eventually(streams).toBe(0);
  await stage().say('dozing', [], 'And the crate 1.');
  await turn('visible');
  await page.clock.fastForward(1_000);
  await happened(page).getByText('And the crate 1.').first().waitFor();
  await eventually(streams).toBe(1);
});
