import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { abortAll, isSpeaking, playIdle } from './fixtures.ts';
import { OFFICE, STREAMED } from './office.ts';
import { openStage } from './stage.ts';

/** What the functions below use of the page they run in. */
interface Window {
  getComputedStyle(of: unknown): { direction: string };
  document: { createRange(): Placed & { selectNodeContents(of: unknown): void } };
}
interface Placed {
  getBoundingClientRect(): { left: number };
}

const directionOf = (each: unknown) => (globalThis as unknown as Window).getComputedStyle(each).direction;
/** The space before the text of an element, px. */
const gapBefore = (each: unknown) => {
  const range = (globalThis as unknown as Window).document.createRange();
  range.selectNodeContents(each);
  return range.getBoundingClientRect().left - (each as Placed).getBoundingClientRect().left;
};

const browsing = useBrowser();
const HEBREW = 'שלום לכולם, crates of tea.';
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playIdle(made, 'panel');
  await made.say('panel', [], HEBREW);
  await made.say('panel', ['researcher'], 'What do the tide tables say for the week?');
  await isSpeaking(made, 'panel', 'researcher');
  const dispose = made[Symbol.asyncDispose];
  return Object.assign(made, {
    async [Symbol.asyncDispose]() {
      await abortAll(made, 'panel');
      await dispose();
    },
  });
});

pageTest(
  'an agent is shown by a strip of states and its answer; its chart is drawn when asked for',
  async () => {
    const page = await browsing.open(`${stage().url}c/panel?agent=researcher`);
    const panel = page.getByRole('tabpanel', { name: 'State' });
    const strip = panel.getByRole('list', { name: 'State' });
    await eventually(() => strip.innerText()).toMatch(
      /assembling[^]*working › streaming[^]*\sfor \d[^]*acting/,
    );
    const answer = panel.getByRole('region', { name: 'Answer' });
    await eventually(() => answer.innerText()).toContain(STREAMED.slice(0, 60));
    expect(await answer.innerText()).toMatch(/to Ana: What do the tide tables say/);
    // The answer is above everything but the strip.
    const next = panel.getByRole('region', { name: 'Possible next events' });
    const top = async (part: typeof next) => (await part.boundingBox())?.y ?? 0;
    expect(await top(answer)).toBeLessThan(await top(next));
    expect(await panel.getByRole('group', { name: 'Statechart' }).count()).toBe(0);
    await panel.getByRole('button', { name: 'Statechart' }).click();
    await panel.getByRole('group', { name: 'Statechart' }).first().waitFor();
  },
);

pageTest('a past turn shows its answer and the agent as it was then', async () => {
  const page = await browsing.open(`${stage().url}c/panel/t/panel:researcher:1`);
  const shown = detail(page);
  await shown.getByText('The old tariff took 4 %').waitFor();
  await eventually(() => shown.innerText()).toMatch(/done at [\d:]+[^]*After it, Researcher was idle/);
  expect(await shown.getByText('streaming').count()).toBe(0);
  expect(await shown.getByRole('group', { name: 'Available commands' }).innerText()).toMatch(
    /^Fork\s*Run again…$/,
  );
  // The facts are those of the moment: the researcher has since had two more turns.
  expect(await shown.getByRole('region', { name: 'Facts' }).innerText()).toMatch(
    /Total\s*\$[\d.]+, 1 turn, 0 failed/,
  );
  await shown.getByRole('link', { name: 'now running' }).click();
  await shown.getByRole('button', { name: 'Abort', exact: true }).first().waitFor();
});

pageTest('changed words are marked within changed lines of the Diff tab', async () => {
  const page = await browsing.open(`${stage().url}c/panel`);
  await page.route(/\/diff\//, async (asked) => {
    const response = await asked.fetch();
    const diff = (await response.json()) as { messages: { changes: unknown[] } };
    const lines = ['-The tide is <b>high</b> at four.', '+The tide is <b>low</b> at four.'];
    diff.messages.changes = [{ a: 1, b: 1, role: 'user', hunks: [{ lines }] }];
    await asked.fulfill({ response, json: diff });
  });
  await page.goto(`${stage().url}c/panel/t/panel:researcher:2?tab=diff`);
  const marks = detail(page).locator('mark');
  await eventually(() => marks.allInnerTexts()).toEqual(['high', 'low']);
  expect(await detail(page).getByText('The tide is <b>low</b>').count()).toBe(1);
});

pageTest('what is searched for is marked where it is found, and stays marked behind the link', async () => {
  const page = await browsing.open(stage().url);
  const marked = () =>
    page.evaluate<string[]>("[...(CSS.highlights.get('hit') ?? [])].map((range) => range.toString())");
  await page.getByRole('searchbox', { name: 'Search all conversations' }).fill('tariff took 4 %');
  const found = page.getByRole('link', { name: /The old tariff took 4 %/ });
  await found.waitFor();
  // The excerpt has its own marks around each word.
  await eventually(marked).toEqual(expect.arrayContaining(['tariff', 'took']));
  await found.click();
  await happened(page).waitFor();
  await eventually(marked).toContain('tariff took 4 %');
  await page.reload();
  await eventually(marked).toContain('tariff took 4 %');
  // So is what a filter finds.
  await page.goto(`${stage().url}c/panel?list=turns&q=LIBRARY`);
  await eventually(marked).toContain('library');
});

pageTest('text of people and models has the direction of its letters', async () => {
  const page = await browsing.open(`${stage().url}c/panel?list=events&kind=*&event=29&tab=raw`);
  const seq = (await stage().events('panel')).find(
    ({ kind, body }) => kind === 'message' && 'content' in body && body.content === HEBREW,
  )?.seq;
  const row = happened(page).getByText('שלום לכולם').first();
  await eventually(() => row.evaluate(directionOf)).toBe('rtl');
  await page.goto(`${stage().url}c/panel?event=${seq}&tab=events`);
  // The line begins at the right end of its box.
  const text = detail(page).locator('.event-body > .long pre').first();
  await text.waitFor();
  const gap = await text.evaluate(gapBefore);
  expect(gap).toBeGreaterThan(40);
});
