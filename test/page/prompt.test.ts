import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playCompacted, playFailed, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playIdle(made, 'idle');
  await playFailed(made, 'failed');
  await playCompacted(made, 'compacted');
  return made;
});

function panel(page: Page, name: string): Locator {
  return page.getByRole('tabpanel', { name });
}

/** `9,812`, `~3.5k` or `–` as a number. */
function tokensIn(text: string): number {
  const [, number = '0', unit = ''] = /([\d,.]+)(k?)/.exec(text) ?? [];
  return Number(number.replaceAll(',', '')) * (unit === 'k' ? 1_000 : 1);
}

/** A line of the list of layers: name, tokens and change. */
function layerIn(line: string): { name: string; tokens: number } {
  const [, name = '', tokens = ''] = /^\s*([a-z]+)\s*(~?[\d,.]+k?|–)/.exec(line) ?? [];
  return { name, tokens: tokensIn(tokens) };
}

pageTest('the layers of a prompt add up to its total', async () => {
  const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=prompt`);
  const prompt = panel(page, 'Prompt');
  const layers = prompt.getByRole('region', { name: 'Layers' }).locator('summary');
  await layers.first().waitFor();
  const lines = (await layers.allInnerTexts()).map(layerIn);
  const wanted = ['rules', 'persona', 'tools', 'history', 'trigger'];
  expect(lines.map(({ name }) => name)).toEqual(expect.arrayContaining(wanted));
  const sum = lines.reduce((all, { tokens }) => all + tokens, 0);
  const total = tokensIn(await prompt.getByRole('region', { name: 'Context window' }).innerText());
  expect(total).toBeGreaterThan(3_000);
  // Layers of a thousand tokens or more are rounded to hundreds.
  expect(Math.abs(sum - total)).toBeLessThan(100);
});

pageTest('a layer opens to its text and names its events', async () => {
  const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=prompt`);
  const layers = panel(page, 'Prompt').getByRole('region', { name: 'Layers' });
  await layers.locator('summary', { hasText: 'persona' }).click();
  await layers.getByText('Say where you found them.').waitFor();
  await layers.locator('summary', { hasText: 'history' }).click();
  await layers.getByText('Please be ready for a question about May.').waitFor();
  await layers.getByRole('link', { name: '#1', exact: true }).first().click();
  await eventually(() => page.url()).toContain('event=1');
});

pageTest('the events that made a prompt larger are listed, the largest first', async () => {
  const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=prompt`);
  const prompt = panel(page, 'Prompt');
  await prompt.getByText(/\+4,\d{3} tokens/).waitFor();
  const first = prompt.getByRole('listitem').first();
  await eventually(() => first.innerText()).toMatch(/event 10[^]*read_report/);
});

pageTest('a cache break is shown with its layer and its event', async () => {
  const page = await browsing.open(`${stage().url}c/compacted/t/compacted:archivist:2?tab=prompt`);
  const broke = panel(page, 'Prompt')
    .getByText(/Cache broke/)
    .locator('xpath=ancestor::p');
  await eventually(() => broke.innerText()).toMatch(
    /since turn 1[^]*in summary[^]*summary adopted[^]*by event 27/,
  );
  await broke.getByRole('link', { name: 'event 27' }).click();
  await eventually(() => page.url()).toContain('event=27');
});

pageTest('the diff compares with the previous turn of the agent and names only what changed', async () => {
  const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=diff`);
  const diff = panel(page, 'Diff');
  await eventually(() => diff.getByLabel('From turn').inputValue()).toBe('1');
  await eventually(() => diff.innerText()).toContain('read_report');
  const layers = await diff.getByRole('list').first().getByRole('listitem').allInnerTexts();
  expect(layers.some((line) => line.includes('history'))).toBe(true);
  expect(layers.filter((line) => /rules|persona|unchanged|[+−]0/.test(line))).toEqual([]);
});

pageTest('a compaction is a line that opens to sizes, reason and summary', async () => {
  const page = await browsing.open(`${stage().url}c/compacted?kind=context`);
  const card = happened(page).getByText(/Archivist made room/);
  await card.click();
  const list = happened(page);
  await eventually(() => list.innerText()).toMatch(/% smaller/);
  for (const text of [
    'Before',
    'After',
    'the prompt was above its trigger',
    'Ledgers before 1900 come first',
  ]) {
    await list.getByText(text).first().waitFor();
  }
});

pageTest('among what was said a compaction is told with the name of its agent, once', async () => {
  const page = await browsing.open(`${stage().url}c/compacted`);
  await happened(page)
    .getByText(/^Archivist made room, a model wrote a summary/)
    .first()
    .waitFor();
});

pageTest('the tool calls of a turn are shown with arguments and results', async () => {
  const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=tools`);
  const tools = panel(page, 'Tools');
  await eventually(() => tools.innerText()).toMatch(/read_report/);
  await eventually(() => tools.innerText()).toMatch(/crates-of-may/);
  await eventually(() => tools.innerText()).toMatch(/search/);
});

pageTest('the next prompt of an agent can be read before it is sent', async () => {
  const page = await browsing.open(`${stage().url}c/idle?agent=critic&tab=prompt`);
  await page.getByRole('link', { name: 'next prompt' }).click();
  await page.getByRole('heading', { name: /Critic\s*\/?\s*next prompt/ }).waitFor();
  await panel(page, 'Prompt').getByRole('region', { name: 'Layers' }).waitFor();
});

pageTest(
  'a prompt says what its turn answers, in which role and with which settings of the model',
  async () => {
    const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=prompt`);
    const facts = panel(page, 'Prompt').locator('.prompt-facts');
    await eventually(() => facts.innerText()).toMatch(
      /Answers\s+message of [^]*#\d+[^]*Role\s+(peer|worker|manager)[^]*Settings\s+maxOutputTokens \d+/,
    );
  },
);
