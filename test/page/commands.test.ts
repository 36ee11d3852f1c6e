import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { detail, eventually, happened, pageTest, press, shared, useBrowser } from './browser.ts';
import { abortAll, playApproval, playBusy, playFailed, playIdle, playQuestion } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

/** Each test plays its own conversation, named after the test. */
const browsing = useBrowser();
const stage = shared(() => openStage(OFFICE));

function may(page: Page): Locator {
  return detail(page).getByRole('group', { name: 'Available commands' });
}

async function commandsIn(conversation: string): Promise<string[]> {
  const events = await stage().events(conversation);
  return events.flatMap((event) => (event.kind === 'command' ? [event.body.command] : []));
}

function isCommand(name: string) {
  return (event: Event) => event.kind === 'command' && event.body.command === name;
}

pageTest('Pause and Resume change an agent, each shown when its event arrives', async () => {
  await playIdle(stage(), 'pause');
  const page = await browsing.open(`${stage().url}c/pause?agent=critic`);
  await may(page).getByRole('button', { name: 'Pause' }).click();
  await may(page).getByRole('button', { name: 'Resume' }).waitFor();
  await detail(page).getByText('paused', { exact: true }).first().waitFor();
  expect(await commandsIn('pause')).toEqual(['pause']);
  await may(page).getByRole('button', { name: 'Resume' }).click();
  await may(page).getByRole('button', { name: 'Pause' }).waitFor();
  expect(await commandsIn('pause')).toEqual(['pause', 'resume']);
});

pageTest('Abort ends a running turn and keeps its text so far', async () => {
  await playBusy(stage(), 'abort');
  const page = await browsing.open(`${stage().url}c/abort?agent=researcher&list=turns`);
  const turns = happened(page);
  await may(page).getByRole('button', { name: 'Abort' }).click();
  await stage().until('abort', ({ kind }) => kind === 'turn.aborted');
  await turns.getByText('aborted').first().waitFor();
  await eventually(() => turns.innerText()).toContain('The tide tables for the week');
});

pageTest('a reply is shown while it is written', async () => {
  const page = await browsing.open(`${stage().url}c/stream`);
  await page.getByRole('heading', { name: /no conversation/ }).waitFor();
  browsing.expectErrors(/404/);
  await stage().play('stream', ['critic'], 'Is there anything missing?');
  await page.goto(`${stage().url}c/stream`);
  await happened(page).getByText('Nobody has said when it begins.').first().waitFor();
  await stage().say('stream', ['researcher'], 'What do the tide tables say for the week?');
  await happened(page).getByText('The tide tables for the week').first().waitFor();
  await eventually(() => page.getByRole('region', { name: 'Agents' }).innerText()).toMatch(/streaming/);
  await abortAll(stage(), 'stream');
});

pageTest('Retry repeats a failed turn: the page shows the command, the new turn and no failure', async () => {
  await playFailed(stage(), 'retry');
  const page = await browsing.open(`${stage().url}c/retry?agent=writer`);
  await may(page).getByRole('button', { name: 'Retry' }).click();
  await happened(page).getByText('From Monday on, small shippers pay half.').first().waitFor();
  expect(await commandsIn('retry')).toEqual(['retry']);
  const health = page.getByRole('navigation', { name: 'Health' });
  await eventually(() => health.innerText()).not.toContain('failed');
});

pageTest('two people who press Retry at the same time cause one retry', async () => {
  await playFailed(stage(), 'both');
  const pages = await Promise.all([0, 1].map(() => browsing.open(`${stage().url}c/both?agent=writer`)));
  // Both buttons are pressed before either command is sent. Otherwise the second page would lose its button.
  const pressed = Promise.withResolvers<void>();
  let presses = 0;
  for (const page of pages)
    await page.route('**/api/commands', async (route) => {
      presses += 1;
      if (presses === pages.length) pressed.resolve();
      await pressed.promise;
      await route.continue();
    });
  browsing.expectErrors(/409/);
  await Promise.all(pages.map((page) => may(page).getByRole('button', { name: 'Retry' }).click()));
  for (const page of pages)
    await happened(page).getByText('From Monday on, small shippers pay half.').first().waitFor();
  await stage().troupe.idle();
  expect(await commandsIn('both')).toEqual(['retry']);
  const turns = (await stage().events('both')).filter(
    ({ kind, author }) => kind === 'turn.started' && author.id === 'writer',
  );
  expect(turns).toHaveLength(2);
});

pageTest('the page shows why a command is refused in the current state', async () => {
  await playFailed(stage(), 'refused');
  const page = await browsing.open(`${stage().url}c/refused?agent=writer`);
  // As from a page that does not know yet that a later turn is done.
  await page.route('**/api/commands', (route) =>
    route.continue({ postData: JSON.stringify({ command: 'retry', turn: 'refused:critic:1' }) }),
  );
  browsing.expectErrors(/409/);
  await may(page).getByRole('button', { name: 'Retry' }).click();
  await eventually(() => may(page).innerText()).toMatch(/refused:critic:1/);
  expect(await may(page).getByRole('button', { name: 'Retry' }).isEnabled()).toBe(true);
  expect(await commandsIn('refused')).toEqual([]);
});

pageTest('a steering message reaches an agent during its turn', async () => {
  await playBusy(stage(), 'steer');
  const page = await browsing.open(`${stage().url}c/steer?agent=researcher`);
  const form = page.getByRole('form', { name: 'Send a message' });
  await form.getByRole('combobox', { name: 'To' }).selectOption('researcher');
  await form.getByRole('combobox', { name: 'While it is busy' }).selectOption('interrupt');
  await form.getByRole('textbox', { name: 'Message' }).fill('Stop, please. That is all for now.');
  await form.getByRole('button', { name: 'Send' }).click();
  await happened(page).getByText('Then I close the library for today.').first().waitFor();
  const sent = await stage().until(
    'steer',
    ({ kind, author }) => kind === 'message' && author.id === 'operator',
  );
  expect(sent).toMatchObject({ to: ['researcher'], whileBusy: 'interrupt' });
  expect(await form.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('');
});

pageTest('a question is answered in place, with one of its choices', async () => {
  await playQuestion(stage(), 'question');
  const page = await browsing.open(`${stage().url}c/question`);
  const waiting = page.getByRole('region', { name: 'Waiting for you' });
  await waiting.getByText('Which tone should the headline have?').waitFor();
  await press(waiting.getByRole('button', { name: 'calm' }));
  await happened(page).getByText('Then calm it is').first().waitFor();
  await waiting.waitFor({ state: 'detached' });
  const answer = await stage().until('question', ({ kind }) => kind === 'question.answered');
  expect(answer).toMatchObject({ body: { outcome: 'answered', content: 'calm' } });
});

pageTest('what was begun as an answer is there again after a look at another page', async () => {
  await playQuestion(stage(), 'begun');
  const page = await browsing.open(`${stage().url}c/begun`);
  const answer = page.getByRole('textbox', { name: 'Answer', exact: true });
  await answer.fill('neither, ra');
  await page.getByRole('link', { name: 'Troupe' }).click();
  await page.getByRole('region', { name: 'Waiting for you' }).waitFor({ state: 'detached' });
  await page.goBack();
  await eventually(() => answer.inputValue()).toBe('neither, ra');
});

pageTest('a call that needs approval is approved in place, with its arguments', async () => {
  await playApproval(stage(), 'approval');
  const page = await browsing.open(`${stage().url}c/approval`);
  const waiting = page.getByRole('region', { name: 'Waiting for you' });
  await eventually(() => waiting.innerText()).toMatch(/publish[^]*Half price for small shippers/);
  await waiting.getByRole('textbox', { name: 'Note to the agent' }).fill('well done');
  await press(waiting.getByRole('button', { name: 'Approve' }));
  await happened(page).getByText('It is out.').first().waitFor();
  const decided = await stage().until('approval', ({ kind }) => kind === 'approval.decided');
  expect(decided).toMatchObject({ body: { outcome: 'approved', note: 'well done' } });
});

const hasFocus = (place: Locator) => place.evaluate((each) => each.ownerDocument.activeElement === each);

pageTest('Retire acts only after the question is answered, by pointer or keyboard', async () => {
  await playIdle(stage(), 'retire');
  const page = await browsing.open(`${stage().url}c/retire?agent=critic`);
  const button = may(page).getByRole('button', { name: 'Retire' }).first();
  await button.dblclick();
  const question = may(page).getByRole('alertdialog', { name: 'Retire critic?' });
  await question.waitFor();
  await page.keyboard.press('Escape');
  await question.waitFor({ state: 'detached' });
  await eventually(() => hasFocus(button)).toBe(true);
  expect(await commandsIn('retire')).toEqual([]);
  // From the palette too: Enter twice does nothing, because Cancel is chosen first.
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Agent, turn/ }).fill('retire critic');
  await page.keyboard.press('Enter');
  await page.getByRole('option', { name: 'Yes: Retire critic' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('combobox', { name: /Agent, turn/ }).waitFor({ state: 'detached' });
  expect(await commandsIn('retire')).toEqual([]);
  await button.press('Enter');
  await eventually(() => hasFocus(question)).toBe(true);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await stage().until('retire', isCommand('retire'));
});

pageTest(
  'a turn is run again and again, and all are shown side by side on a page with an address',
  async () => {
    await playIdle(stage(), 'again');
    const page = await browsing.open(`${stage().url}c/again/t/again:critic:1`);
    await may(page).getByRole('button', { name: 'Run again…' }).click();
    const asked = page.getByRole('dialog', { name: 'Run the turn again' });
    await asked.getByRole('textbox', { name: 'Message' }).fill('Is anything missing? Be quick.');
    await asked.getByRole('button', { name: 'Run again' }).click();
    const both = page.getByRole('main', { name: 'Comparison' });
    const row = (name: RegExp) => both.getByRole('row', { name }).innerText();
    await eventually(() => row(/^State/)).toMatch(/done\s+done/);
    expect(await row(/^Words/)).toContain('Nobody has said');
    expect(await row(/^Changed/)).toContain('Is anything missing? Be quick.');
    await page.reload();
    await both.getByRole('link', { name: 'Back to the turn' }).click();
    await may(page).getByRole('link', { name: 'compare with 1 run' }).waitFor();
    await may(page).getByRole('button', { name: 'Run again…' }).click();
    await asked.getByRole('combobox', { name: 'Change' }).selectOption('same');
    await asked.getByRole('button', { name: 'Run again' }).click();
    await eventually(() => row(/^State/)).toMatch(/done\s+done\s+done/);
    expect(await row(/^Changed/)).toMatch(/Be quick\.\s+nothing/);
    await both.getByRole('link', { name: 'Run 1' }).click();
    await eventually(() => decodeURIComponent(new URL(page.url()).pathname)).toMatch(
      /\/c\/again-fork-\d+\/t\/again-fork-\d+:critic:1/,
    );
    await stage().until('again', isCommand('fork'));
  },
);

pageTest('Fork copies the conversation once, even by a double click, and opens the copy', async () => {
  await playIdle(stage(), 'fork');
  const before = (await stage().events('fork')).length;
  const page = await browsing.open(`${stage().url}c/fork/t/fork:critic:1`);
  await may(page).getByRole('button', { name: /^Fork/ }).dblclick();
  await eventually(() => new URL(page.url()).pathname).toMatch(/\/c\/fork-fork-\d+/);
  await happened(page).getByText('Gladly. Before we announce it').first().waitFor();
  // The original has one more event, the fork command.
  expect((await stage().events('fork')).slice(before).map(({ kind }) => kind)).toEqual(['command']);
  await stage().until('fork', isCommand('fork'));
  // What the agent does there stands beside what it did in the original.
  const fork = decodeURIComponent(new URL(page.url()).pathname.split('/c/')[1] ?? '');
  await stage().play(fork, ['critic'], 'Is there anything missing?');
  await page.goto(`${stage().url}c/${fork}/t/${fork}:critic:1`);
  await may(page).getByRole('link', { name: 'compare with the original' }).click();
  const state = page.getByRole('main', { name: 'Comparison' }).getByRole('row', { name: /^State/ });
  await eventually(() => state.innerText()).toMatch(/done\s+done/);
});
