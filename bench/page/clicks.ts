import type { Locator, Page } from 'playwright-core';
import { launchChromium } from '../../test/page/browser.ts';
import { playApproval, playCompacted, playFailed } from '../../test/page/fixtures.ts';
import { OFFICE } from '../../test/page/office.ts';
import { openStage, type Play } from '../../test/page/stage.ts';
import { installChromium } from '../../test/services/chromium.ts';

/** `npm run bench:clicks`: the clicks that tasks take from home, done in Chromium. Exits 1 if one takes too many. */
const CONVERSATIONS = Number(process.argv[2] ?? 10_000);
const AT_ONCE = 200;

const scripted = { provider: 'scripted', model: 'test' } as const;
const GIVE = { name: 'delegate', args: { to: 'surveyor', task: 'look up plot 7' } };
const LEAD = {
  ...scripted,
  id: 'lead',
  tools: ['delegate'],
  script: { rules: [{ when: { contains: 'It is dry' }, reply: 'Thank you.' }, { calls: [GIVE] }] },
};
const SURVEYOR = { ...scripted, id: 'surveyor', script: { rules: [{ reply: 'It is dry.' }] } };

/** The office, with an agent whose model never says a word, and two of which one gives the other a task. */
const PLAY: Play = {
  company: (url, clock) => {
    const office = OFFICE.company(url, clock);
    const silent = { id: 'bo', provider: 'openai-compatible', baseUrl: url, apiKeyEnv: 'KEY', model: 'bo' };
    return { ...office, agents: [...(office.agents ?? []), silent, LEAD, SURVEYOR] } as typeof office;
  },
  lines: [...OFFICE.lines, { agent: 'bo', hears: /./, says: { hang: true } }],
};

const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
await using stage = await openStage(PLAY);
for (let done = 0; done < CONVERSATIONS; done += AT_ONCE)
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, CONVERSATIONS - done) }, (_, index) =>
      stage.say(`calm-${done + index}`, [], `About parcel ${done + index}.`),
    ),
  );
await playFailed(stage, 'tariff');
await playCompacted(stage, 'ledgers');
await playApproval(stage, 'release');
await stage.play('survey', ['lead'], 'Have the plot looked up.');
await stage.say('silent', ['bo'], 'Where are the ledgers?');
await stage.until('silent', ({ kind }) => kind === 'turn.started');
stage.clock.pass(240_000);

const browser = await launchChromium(chromium.path);
let clicks = 0;
async function click(what: Locator): Promise<void> {
  await what.click();
  clicks += 1;
}
const line = (page: Page, id: string) => page.locator(`.inbox-row[title^="${id},"]`);
const detail = (page: Page) => page.getByRole('region', { name: 'Detail', exact: true });

const TASKS: [task: string, goal: number, run: (page: Page) => Promise<unknown>][] = [
  [
    'why has a conversation no answer',
    2,
    async (page) => {
      await click(line(page, 'tariff'));
      await detail(page).getByText('You exceeded your current quota').first().waitFor();
    },
  ],
  [
    'what is stuck right now',
    0,
    (page) =>
      page.getByRole('region', { name: 'Stuck now' }).getByText('no word from the model for').waitFor(),
  ],
  [
    'the costliest turn',
    2,
    async (page) => {
      await click(page.getByRole('link', { name: 'Costliest' }));
      await page.waitForURL(/order=costliest/);
      await click(page.getByRole('region', { name: 'Found' }).getByRole('link').first());
      await page.getByRole('columnheader', { name: 'Cost' }).waitFor();
      await page.locator('th[aria-sort=descending]').waitFor();
      await page.locator('[data-turn]').first().waitFor();
    },
  ],
  [
    'the event that broke the cache',
    3,
    async (page) => {
      await click(line(page, 'ledgers'));
      await click(page.getByRole('link', { name: 'Turns' }));
      await click(page.getByRole('link', { name: 'cache broke' }).first());
      await detail(page).getByText('Cache broke').first().waitFor();
    },
  ],
  [
    'approve',
    1,
    async (page) => {
      // A person reads the call before; the place has then stood still.
      await page.locator('[data-request] .button-run:not([aria-disabled])').waitFor();
      await click(page.locator('[data-request] .button-run'));
      await stage.until('release', ({ kind }) => kind === 'approval.decided');
    },
  ],
  [
    'who gave whom which task',
    2,
    async (page) => {
      await click(line(page, 'survey'));
      await click(page.getByRole('link', { name: 'Tree' }));
      const tree = page.getByRole('list', { name: 'Tasks' });
      await tree.getByRole('link', { name: 'lead gives surveyor a task' }).waitFor();
    },
  ],
  [
    'who has written to whom',
    2,
    async (page) => {
      await click(line(page, 'survey'));
      await click(page.getByRole('link', { name: 'Graph' }));
      await page.getByRole('button', { name: /surveyor.*received/i }).waitFor();
    },
  ],
  [
    'who holds the queue',
    1,
    async (page) => {
      await click(page.getByRole('navigation', { name: 'Health' }).getByRole('button', { name: /^queue/ }));
      const runs = page.getByRole('list', { name: 'Running turns' });
      await runs.getByRole('link', { name: '@bo in silent' }).waitFor();
    },
  ],
];

try {
  const counted = await browser.newPage();
  await counted.goto(stage.url);
  await counted.getByRole('main').getByText('Failed').first().waitFor();
  await counted.getByText(/Counting:/).waitFor({ state: 'hidden', timeout: 120_000 });
  await counted.close();
  console.log(`${'task'.padEnd(36)} goal clicks`);
  for (const [task, goal, run] of TASKS) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.setDefaultTimeout(15_000);
    await page.goto(stage.url);
    clicks = 0;
    const problem = await run(page).then(
      () => null,
      (error: unknown) => String(error).split('\n', 3).join(' '),
    );
    const isOk = problem === null && clicks <= goal;
    console.log(`${task.padEnd(36)} ${goal}    ${clicks}      ${isOk ? 'ok' : `MISSED ${problem ?? ''}`}`);
    if (!isOk) process.exitCode = 1;
    await page.close();
  }
} finally {
  await browser.close();
  const events = await stage.events('silent');
  const turn = events.find(({ kind }) => kind === 'turn.started')?.turn;
  if (turn) await stage.troupe.command({ command: 'abort', turn }, { kind: 'user', id: 'ana', name: 'Ana' });
}
