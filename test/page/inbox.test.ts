import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed, playIdle, playQuestion } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

/** More than one page of the list. */
const MANY = 60;

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'failed');
  await playIdle(made, 'asking');
  await playQuestion(made, 'asking');
  for (let index = 0; index < MANY; index += 1) await made.say(`calm-${index}`, [], `About parcel ${index}.`);
  return made;
});

pageTest(
  'home has every conversation by what it needs, failures first, with the reason in words',
  async () => {
    const page = await browsing.open(stage().url);
    const section = (name: string) => page.getByRole('region', { name, exact: true });
    const failed = section('Failed').getByRole('link');
    await failed.first().waitFor();
    expect(await failed.allInnerTexts()).toEqual([
      expect.stringMatching(/Writer: 429 You exceeded/) as string,
    ]);
    await eventually(() => section('Needs you').getByRole('link').first().innerText()).toMatch(/asks: /);
    const states = page.getByRole('navigation', { name: 'States' });
    await states.getByRole('link', { name: `Quiet ${MANY}` }).waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await eventually(() => section('Quiet').getByRole('link').count()).toBe(MANY);
  },
);

pageTest('filters are in the address, and a view of them is kept under a name', async () => {
  const page = await browsing.open(`${stage().url}?state=quiet&q=parcel+7`);
  const lines = page.getByRole('region', { name: 'Found' }).getByRole('link');
  await eventually(() => lines.count()).toBe(1);
  expect(await lines.innerText()).toContain('About parcel 7.');
  await page.getByRole('button', { name: 'Save this view' }).click();
  await page.getByRole('textbox', { name: 'Name of the view' }).fill('Seven');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Clear' }).click();
  await eventually(() => new URL(page.url()).search).toBe('');
  await page.reload();
  await page.getByRole('link', { name: 'Seven' }).click();
  await eventually(() => lines.count()).toBe(1);
  await lines.click();
  await eventually(() => new URL(page.url()).pathname).toMatch(/c\/calm-7$/);
});

pageTest('the palette finds conversations that no list shows', async () => {
  const page = await browsing.open(`${stage().url}c/failed`);
  await page.getByRole('region', { name: 'Conversations' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Agent, turn, conversation/ }).fill('about parcel 0');
  await page.getByRole('option', { name: /^calm-0/ }).click();
  await eventually(() => new URL(page.url()).pathname).toMatch(/c\/calm-0$/);
});

pageTest(
  'a question that no person has answered for a day says so on its line, and stands once',
  async () => {
    stage().clock.pass(25 * 3_600_000);
    const page = await browsing.open(stage().url);
    const words = 'waits for an answer of a person for 25 h';
    const asks = page.getByRole('region', { name: 'Needs you', exact: true });
    await asks.getByText(words).waitFor();
    // It stands once.
    expect(await page.getByText(words).count()).toBe(1);
    await asks.getByRole('link').filter({ hasText: words }).click();
    await eventually(() => new URL(page.url()).pathname).toMatch(/c\/asking/);
  },
);

pageTest('on a phone the filters fold into one button, and the list begins on the first screen', async () => {
  const page = await browsing.open(stage().url, { viewport: { width: 390, height: 844 } });
  const failed = page.getByRole('region', { name: 'Failed', exact: true });
  await failed.waitFor();
  const filters = page.getByRole('group', { name: 'Filters' });
  expect((await filters.boundingBox())?.height).toBeLessThan(44);
  expect((await failed.boundingBox())?.y).toBeLessThan(844 / 2);
  expect(await filters.getByRole('textbox', { name: 'Owner' }).isVisible()).toBe(false);
  await filters.getByRole('button', { name: 'Filters' }).click();
  await filters.getByRole('textbox', { name: 'Owner' }).fill('Nobody');
  await page.keyboard.press('Enter');
  await page.getByText('No conversation matches.').waitFor();
  await filters.getByRole('button', { name: 'Filters 1' }).click();
  await eventually(() => filters.getByRole('textbox', { name: 'Owner' }).isVisible()).toBe(false);
});
