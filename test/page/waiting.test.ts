import { expect } from 'vitest';
import { detail, happened, pageTest, useBrowser } from './browser.ts';
import { playFailed } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage, type Play } from './stage.ts';

const browsing = useBrowser();

const HANGS: Play = {
  company: (url) => ({
    agents: [{ id: 'bo', provider: 'openai-compatible', baseUrl: url, apiKeyEnv: 'KEY', model: 'bo' }],
  }),
  lines: [{ agent: 'bo', hears: /./, says: { hang: true } }],
};

pageTest('the prompt is shown while its model has not said a word', async () => {
  await using stage = await openStage(HANGS);
  browsing.expectErrors(/404/);
  const first = await stage.say('c', [], 'For nobody yet.');
  expect(first.seq).toBe(1);
  const page = await browsing.open(`${stage.url}c/c?agent=bo&tab=prompt`);
  await stage.say('c', ['bo'], 'Where are the ledgers?');
  await detail(page).getByText('Where are the ledgers?').first().waitFor();
  await page.close();
});

pageTest('a write works after a restart of the server without a reload', async () => {
  const app = { writeToken: 'of-the-first-start' };
  await using stage = await openStage(OFFICE, { app });
  browsing.expectErrors(/ERR_|403/);
  await stage.play('c', ['critic'], 'Is there anything missing?');
  const page = await browsing.open(`${stage.url}c/c`);
  await page.getByRole('navigation', { name: 'Health' }).getByText('seq').first().waitFor();
  await stage.stop();
  app.writeToken = 'of-the-second-start';
  await stage.start();
  await page.getByRole('textbox', { name: 'Message' }).fill('Written after the restart');
  await page.getByRole('button', { name: 'Send' }).click();
  await stage.until(
    'c',
    (event) => event.kind === 'message' && event.body.content === 'Written after the restart',
  );
  await page.close();
});

pageTest('a failed turn before a later one has no Retry, and says why', async () => {
  await using stage = await openStage(OFFICE);
  await playFailed(stage, 'twice');
  const page = await browsing.open(`${stage.url}c/twice`);
  await happened(page).getByRole('button', { name: 'Retry' }).waitFor();
  await stage.play('twice', ['writer'], 'And once more?');
  await happened(page).getByText('Retry is not possible: a later turn of Writer exists.').waitFor();
  await page.close();
});

pageTest('a turn whose model is silent is named with its reason, and leads to the turn', async () => {
  await using stage = await openStage(HANGS);
  await stage.say('c', ['bo'], 'Where are the ledgers?');
  await expect.poll(() => stage.vendor.requests.length).toBe(1);
  // The prompt is asked for until its receipt is there.
  browsing.expectErrors(/404/);
  stage.clock.pass(240_000);
  const page = await browsing.open(`${stage.url}c/c`);
  const line = page.getByRole('list', { name: 'Stuck work' }).getByRole('listitem');
  await line.getByText('no word from the model for 4 min').waitFor();
  expect(
    await line.getByRole('link', { name: 'bo in “Where are the ledgers?”' }).getAttribute('href'),
  ).toContain('bo');
  await page.goto(stage.url);
  const now = page.getByRole('region', { name: 'Stuck now' });
  await now.getByText('no word from the model for 4 min').waitFor();
  await now.getByRole('button', { name: 'Abort' }).click();
  await stage.until('c', ({ kind }) => kind === 'turn.aborted');
  await page.close();
});

const ONE_SLOT: Play = {
  company: (url, clock) => ({
    ...HANGS.company(url, clock),
    limits: { providers: { 'openai-compatible': { turns: 1 } } },
  }),
  lines: HANGS.lines,
};

pageTest(
  'an agent whose turn waits for a slot is not idle: the page says who holds it, and for how long',
  async () => {
    await using stage = await openStage(ONE_SLOT);
    await stage.say('holds', ['bo'], 'Where are the ledgers?');
    await expect.poll(() => stage.vendor.requests.length).toBe(1);
    await stage.say('waits', ['bo'], 'And the receipts?');
    await expect.poll(async () => (await stage.troupe.queues()).turns.waitingTotal).toBe(1);
    stage.clock.pass(138_000);
    const words =
      /waits for a slot of openai-compatible for 1[34]\d s, held by bo in “Where are the ledgers\?”/;
    const page = await browsing.open(`${stage.url}c/waits`);
    await page.getByRole('region', { name: 'Agents' }).getByText(words).waitFor();
    await page.getByRole('list', { name: 'Waiting turns' }).getByText(words).waitFor();
    const runs = page
      .getByRole('list', { name: 'Running turns' })
      .getByRole('link', { name: 'bo in “Where are the ledgers?”' });
    expect(await runs.getAttribute('href')).toContain('holds');
    await page.getByText('1 of 1 slots, 1 waiting').waitFor();
    await page.getByText('1 queued').waitFor();
    await page.getByText(/queue 1, oldest 2 m/).waitFor();
    await detail(page).getByText(words).waitFor();
    for (const name of ['Agents', 'Health'])
      expect(await page.locator(`[aria-label="${name}"]`).innerText()).not.toContain('idle');
    await page.close();
  },
);
