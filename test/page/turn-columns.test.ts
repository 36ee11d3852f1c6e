import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playCompacted, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playIdle(made, 'idle');
  await playCompacted(made, 'ledgers');
  return made;
});

pageTest('turns are compared by cost, cache and time, and a broken cache leads to its cause', async () => {
  const page = await browsing.open(stage().url);
  const list = happened(page);
  const sorted = (name: string) => list.getByRole('columnheader', { name }).getAttribute('aria-sort');
  const numbers = async () =>
    (await list.locator('[data-turn] .turn-number').allInnerTexts()).map((text) => Number(text));
  const costs = async () =>
    (await list.locator('[data-turn] .turn-figure:nth-of-type(2)').allInnerTexts()).map((text) =>
      Number(text.replace('$', '')),
    );

  // The costliest turn in two clicks: the order, and the first conversation.
  const conversations = page.getByRole('main', { name: 'Conversations' });
  await page.getByRole('combobox', { name: 'Order' }).selectOption('costliest');
  await eventually(() => conversations.getByRole('listitem').first().innerText()).toMatch(/ledgers[^]*\$\d/);
  await conversations.getByRole('option', { name: 'Costliest first' }).waitFor({ state: 'attached' });
  await conversations.getByRole('link', { name: /ledgers/ }).click();
  await eventually(() => sorted('Cost')).toBe('descending');
  expect(new URL(page.url()).searchParams.get('sort')).toBe('-cost');
  await eventually(async () => (await costs()).length).toBe(3);
  const dear = await costs();
  expect(dear.every((cost) => cost > 0)).toBe(true);
  expect(dear).toEqual(dear.toSorted((a, b) => b - a));
  const [costliest] = await numbers();
  await list.getByRole('img', { name: `in turn ${costliest} of archivist` }).waitFor();

  // The keys follow the order of the list, and sort it.
  await page.keyboard.press('j');
  await eventually(() => page.url()).toContain(encodeURIComponent(`archivist:${costliest}`));
  await list.getByRole('button', { name: 'Cost' }).focus();
  await page.keyboard.press('Enter');
  await eventually(() => sorted('Cost')).toBe('ascending');
  expect(await costs()).toEqual(dear.toReversed());
  await page.reload();
  await eventually(() => sorted('Cost')).toBe('ascending');
  await list.getByRole('columnheader', { name: 'Turn' }).getByRole('button').click();
  await eventually(numbers).toEqual([3, 2, 1]);
  expect(new URL(page.url()).searchParams.get('sort')).toBeNull();

  // The event that broke the cache in three clicks.
  await page.goto(stage().url);
  await conversations.getByRole('link', { name: /ledgers/ }).click();
  await list.getByRole('link', { name: 'Turns' }).click();
  await list.getByRole('link', { name: 'cache broke' }).click();
  await eventually(() => detail(page).innerText()).toMatch(/Cache broke[^]*by event \d+|Cache broke/);
  expect(await list.locator('[data-turn]').count()).toBe(3);

  // What tools took is in the rows.
  await page.goto(`${stage().url}c/idle?list=turns&by=researcher&sort=-time`);
  await list.getByText(/search \d+(\.\d)? m?s/).waitFor();
  await eventually(() => sorted('Time')).toBe('descending');

  // An address that names an event beyond the last one.
  await page.goto(`${stage().url}c/idle?at=99999`);
  const last = (await stage().events('idle')).length;
  await page.getByText(`There is no event 99999: the last is ${last}.`).waitFor();
  await eventually(() => page.getByRole('slider', { name: 'Last event shown' }).inputValue()).toBe(`${last}`);
  expect(await page.getByRole('navigation', { name: 'Health' }).innerText()).toContain(
    `seq ${last} of ${last}`,
  );
});
