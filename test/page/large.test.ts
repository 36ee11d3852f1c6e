import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { CROWD, CROWD_SIZE, playCrowd } from './crowd.ts';
import { importLongLog, NEEDLE } from './long-log.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const EVENTS = 10_000;
const browsing = useBrowser();
const long = shared(async () => {
  const stage = await openStage(OFFICE);
  await importLongLog(stage, 'long', EVENTS);
  return stage;
});
const crowd = shared(async () => {
  const stage = await openStage(CROWD);
  await playCrowd(stage, 'crowd');
  return stage;
});

pageTest(
  'only the visible ones of ten thousand events are in the document, from the last to the first',
  async () => {
    const page = await browsing.open(`${long().url}c/long?list=events&kind=*`);
    const list = happened(page).getByRole('group', { name: 'Events' });
    const lines = list.getByRole('link');
    await eventually(async () => (await lines.last().innerText()).replace(/\s[^]*/, '')).toBe(String(EVENTS));
    expect(await lines.count()).toBeLessThan(100);
    await list.hover();
    await eventually(async () => {
      await page.mouse.wheel(0, -EVENTS * 28);
      return lines.first().innerText();
    }).toMatch(/^1\s[^]*Question 1:/);
    expect(await lines.count()).toBeLessThan(100);
    await page.mouse.wheel(0, EVENTS * 14);
    await eventually(async () =>
      Number((await lines.first().innerText()).replace(/\s[^]*/, '')),
    ).toBeGreaterThan(4_900);
  },
);

pageTest('one line among ten thousand is found by its words', async () => {
  const page = await browsing.open(`${long().url}c/long?list=events`);
  await happened(page).getByRole('searchbox', { name: 'Filter by text' }).fill(NEEDLE);
  await happened(page)
    .getByRole('link', { name: new RegExp(NEEDLE) })
    .waitFor();
  expect(await happened(page).getByRole('group', { name: 'Events' }).getByRole('link').count()).toBe(1);
});

pageTest('the failed one of fifty agents comes first', async () => {
  const page = await browsing.open(`${crowd().url}c/crowd`);
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByRole('heading', { name: `Agents ${CROWD_SIZE}` }).waitFor();
  const lines = await agents.getByRole('listitem').allInnerTexts();
  expect(lines).toHaveLength(CROWD_SIZE);
  expect(lines[0]).toMatch(/failed[^]*Agent 37/);
  expect(lines.filter((line) => line.includes('failed'))).toHaveLength(1);
  await agents.getByRole('listitem').first().getByRole('link').first().click();
  await detail(page).getByText('provider_auth').first().waitFor();
});
