import { expect } from 'vitest';
import { eventually, pageTest, useBrowser } from './browser.ts';
import { ASKERS, clickRapidly } from './rapid-clicks.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();

pageTest('rapid clicks approve only what was under the pointer when they were aimed', async () => {
  await using stage = await openStage(ASKERS);
  await stage.say('all', [], 'The bills of today.');
  // A request that somebody else has decided meanwhile is refused.
  browsing.expectErrors(/40\d/);
  const page = await browsing.open(`${stage.url}c/all?list=turns`, {
    viewport: { width: 1280, height: 1400 },
  });
  const { sent, decided } = await clickRapidly(page, stage, { clicks: 20, seed: 7, placeOf: () => 'all' });
  expect(sent.filter(({ aimed, request }) => aimed !== request)).toEqual([]);
  expect(decided.filter((request) => !sent.some(({ aimed }) => aimed === request))).toEqual([]);
  expect(decided.length).toBeGreaterThan(0);
  await page.close();
});

pageTest('home approves a call that it shows whole, and says who holds the queue', async () => {
  await using stage = await openStage(ASKERS);
  await stage.play('bills', ['a3'], 'Pay the bill.');
  const page = await browsing.open(stage.url);
  const decide = page.locator('[data-request]');
  await decide.getByText('pay {"to":"a3"}').waitFor();
  const approve = decide.getByRole('button', { name: 'Approve' });
  await eventually(() => approve.getAttribute('aria-disabled')).toBeNull();
  await approve.click();
  const { body } = await stage.until('bills', ({ kind }) => kind === 'approval.decided');
  expect(body).toMatchObject({ outcome: 'approved' });
  await decide.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: /^queue/ }).click();
  await page.getByRole('region', { name: 'Queues' }).waitFor();
  await page.close();
});
