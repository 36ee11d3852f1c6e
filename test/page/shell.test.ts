import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { abortAll, playBusy, playFailed } from './fixtures.ts';
import { importLongLog } from './long-log.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'failed');
  await importLongLog(made, 'long', 1_000);
  return made;
});

const NARROW = { viewport: { width: 390, height: 844 } };

pageTest('on a narrow screen an address opens the column of its selection', async () => {
  const shown = async (path: string) => {
    const page = await browsing.open(`${stage().url}${path}`, NARROW);
    return page.locator('nav[aria-label="Columns"] [aria-pressed=true]').innerText();
  };
  expect(await shown('c/failed')).toBe('What');
  expect(await shown('c/failed?list=events&kind=talk')).toBe('What');
  expect(await shown('c/failed?tab=prompt')).toBe('Why');
  expect(await shown('c/failed/t/failed:researcher:2')).toBe('Why');
  expect(await shown('c/failed?event=10&tab=raw')).toBe('Why');
});

pageTest('keys typed before the palette is ready go into it and do nothing else', async () => {
  const page = await browsing.open(stage().url);
  const loaded = Promise.withResolvers<void>();
  await page.route(/palette-.*\.js/, async (request) => {
    await loaded.promise;
    await request.continue();
  });
  await page.goto(`${stage().url}c/failed`);
  await page.getByRole('region', { name: 'Agents' }).getByText('Critic').waitFor();
  const before = page.url();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('fcritid');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('c');
  loaded.resolve();
  const field = page.getByRole('combobox', { name: /Agent, turn, conversation/ });
  await field.waitFor();
  await page.keyboard.type(' 1');
  expect(await field.inputValue()).toBe('fcritic 1');
  expect(page.url()).toBe(before);
});

pageTest('the open conversation is up to date in the list without another request', async () => {
  const page = await browsing.open(`${stage().url}c/failed`);
  const line = page.getByRole('region', { name: 'Conversations' }).getByRole('link', { name: /failed/ });
  await line.waitFor();
  await page.route(/api\/inbox/, () => {});
  await stage().say('failed', [], 'By the way.');
  const head = (await stage().events('failed')).length;
  await eventually(() => line.getAttribute('title')).toContain(`${head} events`);
});

pageTest('a user who scrolls up while the list loads stays there', async () => {
  const page = await browsing.open(stage().url);
  const loaded = Promise.withResolvers<void>();
  await page.route(/\/rows\?/, async (request) => {
    await loaded.promise;
    await request.continue();
  });
  await page.goto(`${stage().url}c/long?list=events&kind=*`);
  const list = page.locator('#rows');
  const top = () => list.evaluate((rows) => rows.scrollTop);
  await eventually(top).toBeGreaterThan(1_000);
  const end = await top();
  await list.hover();
  await page.mouse.wheel(0, -600);
  await eventually(top).toBe(end - 600);
  loaded.resolve();
  await list.getByText('…', { exact: true }).first().waitFor({ state: 'detached' });
  await stage().say('long', [], 'One more.');
  await page.getByText('1,001 lines').waitFor();
  expect(await top()).toBe(end - 600);
  expect(await page.getByLabel('Follow the newest').isChecked()).toBe(false);
});

pageTest('a page opened during a reply shows the state of the agent', async () => {
  await playBusy(stage(), 'busy');
  const page = await browsing.open(`${stage().url}c/busy`);
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByText('running · working › streaming').waitFor();
  await abortAll(stage(), 'busy');
  await eventually(() => agents.getByText('working').count()).toBe(0);
});
