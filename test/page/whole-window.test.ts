import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playApproval, playFailed, playIdle, playQuestion } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';
import { isOpen } from './views.ts';

/** More than any window shows. */
const MANY = 64;
const SIZES = [
  [390, 844],
  [768, 1_024],
  [1_280, 800],
  [2_560, 1_440],
] as const;
const VIEWS = [
  '',
  '?state=quiet',
  'c/deep',
  'c/deep?event=3',
  'c/deep?list=turns',
  'c/deep?list=turns&kind=context',
  'c/deep?list=events&kind=*',
  'c/deep?list=events&kind=*&event=3&tab=events',
  'c/deep?list=tree',
  'c/deep?list=graph',
  'c/deep/t/deep:critic:1',
  'c/deep/t/deep:critic:1?tab=prompt',
  'c/deep/t/deep:critic:2?tab=diff',
  'c/deep/t/deep:researcher:1?tab=tools',
  'c/deep/t/deep:critic:1?tab=raw',
  'c/deep?at=9',
  'c/nowhere',
];

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'failed');
  await playIdle(made, 'deep');
  for (let index = 0; index < 20; index += 1) await made.say('deep', [], `Remark ${index}.`);
  await made.play('deep', ['critic'], 'Is there anything missing now?');
  await playQuestion(made, 'deep');
  await playApproval(made, 'deep');
  for (let index = 0; index < 12; index += 1) await made.say('deep', [], `Afterthought ${index}.`);
  for (let index = 0; index < MANY; index += 1) await made.say(`calm-${index}`, [], `About parcel ${index}.`);
  made.clock.pass(25 * 3_600_000);
  return made;
});

/** Where the document, the page and its header stand; nothing of them may move or be longer than the window. */
function measured(page: Page): Promise<object> {
  return page.evaluate(`(() => {
    const [document_, page, header] = [document.scrollingElement, document.getElementById('page'), document.querySelector('.header')];
    // What a hidden part would be scrolled to.
    for (const each of [document_, document.body, page]) each.scrollTop = 1000;
    const { top, bottom } = page.getBoundingClientRect();
    return {
      document: [document_.scrollWidth - innerWidth, document_.scrollHeight - innerHeight],
      page: [top, bottom - innerHeight],
      header: header.getBoundingClientRect().top,
    };
  })()`);
}

const WHOLE = { document: [0, 0], page: [0, 0], header: 0 };

async function isDrawn(page: Page, path: string): Promise<void> {
  if (path === 'c/nowhere') await page.getByRole('heading', { name: /There is no conversation/ }).waitFor();
  else await isOpen(page);
  await eventually(() => page.locator('.detail-loading').count()).toBe(0);
}

pageTest('in every view the page is exactly as high as the window, from phone to wall', async () => {
  browsing.expectErrors(/404/);
  const page = await browsing.open(stage().url);
  for (const path of VIEWS) {
    await page.goto(`${stage().url}${path}`);
    await isDrawn(page, path);
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      const at = `${path} at ${width} px`;
      await eventually(async () => ({ at, ...(await measured(page)) })).toEqual({ at, ...WHOLE });
    }
  }
});

pageTest('no key, link or button scrolls the header away', async () => {
  const page = await browsing.open(stage().url, { viewport: { width: 1_280, height: 800 } });
  await isOpen(page);
  const more = page.getByRole('button', { name: 'Show more' });
  await more.click();
  await eventually(() => page.locator('.inbox-row').count()).toBeGreaterThan(MANY);
  await page.locator('.inbox-row').last().focus();
  expect(await measured(page)).toEqual(WHOLE);
  await page.getByRole('region', { name: 'Needs you' }).getByRole('link').first().click();
  await happened(page).getByText('Which tone should the headline have?').first().waitFor();
  expect(await measured(page)).toEqual(WHOLE);
  for (const list of ['turns', 'events&kind=*', 'talk']) {
    await page.goto(`${stage().url}c/deep?list=${list}`);
    await isDrawn(page, '');
    for (const key of 'jjjkjjj') await page.keyboard.press(key);
    expect(await measured(page), list).toEqual(WHOLE);
  }
  await page.goto(`${stage().url}c/deep`);
  await isDrawn(page, '');
  await page.getByRole('button', { name: /(asks|needs approval)/ }).click();
  expect(await measured(page)).toEqual(WHOLE);
});

pageTest('on a phone three fifths of the window are for what is read', async () => {
  const page = await browsing.open(`${stage().url}c/calm-0`, { viewport: { width: 390, height: 844 } });
  await happened(page).getByText('About parcel 0.').waitFor();
  const { height } = (await page.getByRole('log', { name: 'What was said' }).boundingBox())!;
  expect(height / 844).toBeGreaterThanOrEqual(0.6);
});

pageTest('of several approvals the oldest is above the composer, and the others on request', async () => {
  await playApproval(stage(), 'approvals');
  await playApproval(stage(), 'approvals');
  const page = await browsing.open(`${stage().url}c/approvals?list=turns`);
  const approve = page
    .getByRole('region', { name: 'Waiting for you' })
    .getByRole('button', { name: 'Approve' });
  await approve.waitFor();
  await page.getByRole('button', { name: 'Show 1 more' }).click();
  await eventually(() => approve.count()).toBe(2);
  await page.getByRole('button', { name: 'Show the oldest only' }).click();
  await eventually(() => approve.count()).toBe(1);
});
