import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'failed');
  await playIdle(made, 'idle');
  return made;
});

function found(page: Page): Locator {
  return page.getByRole('listbox', { name: 'Results' }).getByRole('option');
}

pageTest('a search finds words of any conversation, and a hit leads to its event', async () => {
  const page = await browsing.open(stage().url);
  await page.getByRole('searchbox', { name: 'Search all conversations' }).fill('crates of may');
  await page.getByText(/hits? in \d+ conversations?/).waitFor();
  await page.getByRole('link', { name: /Read the whole report on the crates of May/ }).click();
  await eventually(() => page.url()).toMatch(/\/c\/failed.*event=7/);
  await detail(page)
    .getByText(/Read the whole report/)
    .first()
    .waitFor();
});

pageTest(
  'the list is filtered by agent, kind, text and problems, and the address has the filter',
  async () => {
    const page = await browsing.open(`${stage().url}c/failed?list=events&kind=*`);
    const lines = happened(page).getByRole('group', { name: 'Events' }).getByRole('link');
    await eventually(() => lines.count()).toBeGreaterThan(5);
    await happened(page).getByRole('combobox', { name: 'Agent' }).selectOption('critic');
    await eventually(async () => (await lines.allInnerTexts()).join('\n')).not.toMatch(/researcher →|writer/);
    await happened(page).getByRole('combobox', { name: 'Kinds of events' }).selectOption('talk');
    await eventually(() => lines.count()).toBe(2);
    const [asked = '', said = ''] = await lines.allInnerTexts();
    expect(asked).toContain('Is there anything missing in that?');
    expect(said).toContain('Nobody has said when it begins.');
    await happened(page).getByRole('combobox', { name: 'Agent' }).selectOption('');
    await happened(page).getByRole('searchbox', { name: 'Filter by text' }).fill('begins');
    await eventually(() => lines.count()).toBe(1);
    await happened(page).getByRole('searchbox', { name: 'Filter by text' }).fill('');
    await happened(page).getByRole('combobox', { name: 'Kinds of events' }).selectOption('*');
    await happened(page).getByRole('checkbox', { name: 'Problems' }).check();
    await eventually(() => lines.count()).toBe(2);
    expect((await lines.allInnerTexts()).join('\n')).toMatch(/error[^]*turn\.failed/);
    expect(new URL(page.url()).searchParams.get('problems')).toBe('true');
  },
);

pageTest('Ctrl K goes to an agent, a turn, another conversation or a search result', async () => {
  const page = await browsing.open(`${stage().url}c/failed`);
  await page.getByRole('region', { name: 'Agents' }).getByText('Critic').waitFor();
  const field = page.getByRole('combobox', { name: /Agent, turn, conversation/ });
  await page.keyboard.press('Control+k');
  await field.fill('critic');
  await found(page)
    .filter({ hasText: /Critic/ })
    .first()
    .click();
  await detail(page)
    .getByRole('heading', { name: /Critic/ })
    .waitFor();
  await page.keyboard.press('Control+k');
  await field.fill('turn 2 of Researcher');
  await found(page)
    .filter({ hasText: /turn 2 of Researcher/ })
    .waitFor();
  await page.keyboard.press('Enter');
  await detail(page)
    .getByRole('heading', { name: /Researcher\s*\/?\s*turn 2/ })
    .waitFor();
  await page.keyboard.press('Control+k');
  await field.fill('small shippers');
  await found(page)
    .filter({ hasText: /The old tariff took/ })
    .click();
  await eventually(() => page.url()).toContain('/c/idle');
});

pageTest('the palette offers the commands that are legal now and runs them', async () => {
  await playFailed(stage(), 'palette');
  const page = await browsing.open(`${stage().url}c/palette`);
  await page.getByRole('region', { name: 'Agents' }).getByText('Critic').waitFor();
  await page.getByRole('button', { name: 'Ctrl K' }).click();
  await page.getByRole('combobox', { name: /Agent, turn/ }).fill('retry');
  await eventually(() => found(page).allInnerTexts()).toEqual([
    expect.stringMatching(/Retry Writer/) as string,
  ]);
  await page.keyboard.press('Enter');
  await stage().until('palette', ({ kind }) => kind === 'command');
  await happened(page).getByText('From Monday on').first().waitFor();
});

pageTest('the theme follows the system until the user chooses one, which is kept', async () => {
  const page = await browsing.open(`${stage().url}c/failed`, { colorScheme: 'dark' });
  const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  await page.getByRole('region', { name: 'Agents' }).getByText('Critic').waitFor();
  const dark = await background();
  await page.getByRole('button', { name: 'Light or dark' }).click();
  await eventually(background).not.toBe(dark);
  const light = await background();
  await page.reload();
  await eventually(background).toBe(light);
});

pageTest('a conversation is exported as importable JSON lines and as one page', async () => {
  const page = await browsing.open(`${stage().url}c/failed`);
  await page.getByRole('region', { name: 'Agents' }).getByText('Critic').waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Agent, turn/ }).fill('export jsonl');
  const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
  expect(download.suggestedFilename()).toMatch(/failed.*\.jsonl$/);
});

pageTest('a conversation is printed whole, with the formatting of its words', async () => {
  await stage().say('to-print', [], '**All** of it, from the first line');
  for (let number = 1; number <= 120; number += 1) await stage().say('to-print', [], `Line ${number}`);
  const page = await browsing.open(`${stage().url}c/to-print`);
  await page.getByRole('region', { name: 'What happened' }).getByText('Line 120', { exact: true }).waitFor();
  await page.evaluate(RECORD_PRINT);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Agent, turn/ }).fill('print all');
  await page.keyboard.press('Enter');
  await eventually(() => page.evaluate('window.printed')).toEqual({
    bold: 'All',
    font: expect.stringContaining('system-ui'),
    words: expect.stringMatching(/All of it, from the first line[^]*Line 1\b[^]*Line 120/),
  });
});

/** Tells what a frame is about to print, in place of printing it. */
const RECORD_PRINT = `document.addEventListener('load', ({ target }) => {
  if (target.tagName !== 'IFRAME') return;
  target.contentWindow.print = () => {
    const { body } = target.contentDocument;
    const font = target.contentWindow.getComputedStyle(body).fontFamily;
    window.printed = { words: body.textContent, bold: body.querySelector('strong').textContent, font };
  };
}, true)`;

pageTest('a path, a conversation or a turn that there is not is said to be none, with 404', async () => {
  browsing.expectErrors(/404/);
  const page = await browsing.open(stage().url);
  for (const [path, words] of [
    ['nowhere', 'There is no such page'],
    ['c/nobody', 'There is no conversation “nobody”'],
    ['c/failed/t/failed:critic:99', 'There is no turn 99 of critic'],
  ] as const) {
    const answer = await page.goto(`${stage().url}${path}`);
    expect(answer?.status()).toBe(404);
    await page.getByText(words).waitFor();
  }
});

pageTest('the page of the API lists every route of the server, with a command to try each', async () => {
  const page = await browsing.open(`${stage().url}routes`);
  const document = (await (await fetch(`${stage().url}api/openapi.json`)).json()) as { paths: object };
  const count = Object.values(document.paths).flatMap((methods) => Object.keys(methods as object)).length;
  await page.getByText(`${count} routes`, { exact: true }).waitFor();
  await page.getByLabel('Filter routes').fill('post message');
  await page.getByText('/api/conversations/{conversation}/events').first().click();
  await page.getByText(/^curl -X POST '.*Hello/).waitFor();
});
