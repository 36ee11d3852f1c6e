import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { detail, eventually, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'load');
  return made;
});

/** Per agent, the fullness of its window as its bar says it. */
async function barsOf(page: Page): Promise<Record<string, string | null>> {
  const bars = await page.locator('.who-agent:has(.usage)').all();
  const said = bars.map(async (bar) => [
    await bar.locator('.who-name').innerText(),
    await bar.locator('.usage').getAttribute('title'),
  ]);
  return Object.fromEntries((await Promise.all(said)) as [string, string | null][]);
}

function requestsOf(page: Page): Promise<string[]> {
  return page.evaluate<string[]>("performance.getEntriesByType('resource').map(({ name }) => name)");
}

/** The same from the prompts themselves. */
async function promptsOf(turns: Record<string, string>): Promise<Record<string, string>> {
  const read = Object.entries(turns).map(async ([name, turn]) => {
    const answer = await fetch(`${stage().url}api/turns/${turn}/prompt`);
    const { tokens } = (await answer.json()) as { tokens: { percent: number } };
    return [name, `context ${Math.round(tokens.percent)}% full`];
  });
  return Object.fromEntries((await Promise.all(read)) as [string, string][]);
}

pageTest('the bars of all windows come with the snapshot and stay true, without a prompt', async () => {
  const page = await browsing.open(`${stage().url}c/load?list=turns`);
  const turns = { Researcher: 'load:researcher:2', Critic: 'load:critic:1', Writer: 'load:writer:1' };
  const before = await promptsOf(turns);
  await eventually(() => barsOf(page)).toEqual(before);
  // Long enough to be seen in whole percent of the window.
  await stage().play(
    'load',
    ['critic'],
    `Is there anything missing now? ${'Berth 7, 40 crates. '.repeat(200)}`,
  );
  const after = await promptsOf({ ...turns, Critic: 'load:critic:2' });
  await eventually(() => barsOf(page)).toEqual(after);
  expect(after).not.toEqual(before);
  expect((await requestsOf(page)).filter((url) => url.includes('/prompt'))).toEqual([]);
});

pageTest(
  'the document names all that the first rows need: they wait for nothing that the page asks for itself',
  async () => {
    const page = await browsing.open(stage().url);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url().replace(stage().url, '')));
    // What only the running page asks for is not answered.
    await page.route(/assets[/](?!first|conversation)|events[?]after/, () => {});
    await page.goto(`${stage().url}c/load`);
    await page.locator('.words').first().waitFor();
    expect(asked.filter((url) => url.includes('/snapshot'))).toEqual([
      'api/conversations/load/snapshot?events=40',
    ]);
    expect(asked.filter((url) => url.includes('/events?after'))).toEqual([]);
  },
);

pageTest('the list of conversations asks for what it shows once, before the page runs', async () => {
  const page = await browsing.open(stage().url);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url().replace(stage().url, '')));
  // Only what the document names is answered.
  await page.route(/api[/](?!inbox|queues|stuck)/, () => {});
  await page.goto(stage().url);
  await page.locator('.inbox-row').first().waitFor();
  expect(asked.filter((url) => /^api.(inbox|queues|stuck)/.test(url)).toSorted()).toEqual([
    'api/inbox?limit=50&urgent=500',
    'api/queues',
    'api/stuck?limit=200',
  ]);
});

pageTest('a part of the page is fetched when it is shown or about to be, and not before', async () => {
  const page = await browsing.open(stage().url);
  const has = async (part: string) =>
    (await requestsOf(page)).some((url) => url.includes(`/assets/${part}-`));
  const line = page.getByRole('link', { name: /Please be ready/ });
  await line.waitFor();
  for (const part of ['conversation', 'palette', 'hits']) expect(await has(part)).toBe(false);
  await line.hover();
  await eventually(() => has('conversation')).toBe(true);
  await line.click();
  await detail(page).getByRole('tab', { name: 'Prompt' }).waitFor();
  for (const part of ['turn-list', 'event-list', 'tools-tab', 'raw-tab', 'projection'])
    expect(await has(part)).toBe(false);
  await detail(page).getByRole('tab', { name: 'Tools' }).click();
  await eventually(() => has('tools-tab')).toBe(true);
  expect(await has('raw-tab')).toBe(false);
});
