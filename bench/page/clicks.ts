import type { Browser, Locator, Page } from 'playwright-core';
import { launchChromium } from '../../test/page/browser.ts';
import { openCopied } from '../../test/page/kept-world.ts';
import { installChromium } from '../../test/services/chromium.ts';

/**
 * `npm run bench:clicks`: the clicks that tasks of somebody on call take from home, done in Chromium on a copy of the world of
 * `npm run world`. What is typed is no click. Exits 1 if a task takes too many.
 */
const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
await using world = await openCopied({ needsKey: true });
const browser = await launchChromium(chromium.path);

/** A model is silent after three minutes. */
const STUCK_AFTER_MS = 190_000;
/** A person reads a call before deciding. */
const READS_MS = 1_000;
const PHONE = { width: 390, height: 844 };

/** A page on which clicks are counted. */
interface Counted {
  page: Page;
  clicks: number;
  click: (what: Locator) => Promise<void>;
  /** Types words into the filter of home: keys are not counted. */
  filter: (words: string) => Promise<void>;
}

async function openCounted(
  from: Browser,
  key: string,
  viewport = { width: 1280, height: 900 },
): Promise<Counted> {
  const page = await from.newPage({ viewport });
  page.setDefaultTimeout(20_000);
  await page.goto(`${world.url}#token=${world.keys[key]}`);
  await page.getByRole('main').getByText('Failed').first().waitFor();
  const counted: Counted = {
    page,
    clicks: 0,
    async click(what) {
      await what.click();
      counted.clicks += 1;
    },
    async filter(words) {
      await page.getByRole('searchbox', { name: 'Id or words of the first message' }).fill(words);
      await page.getByRole('region', { name: 'Found' }).or(page.locator('.inbox-row')).first().waitFor();
    },
  };
  return counted;
}

const line = (page: Page, id: string) => page.locator(`.inbox-row[title^="${id},"]`);
const detail = (page: Page) => page.getByRole('region', { name: 'Detail', exact: true });
const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

/** Approves what expires first. A click counts once the line has stood still. */
async function approveFirst({ page, click }: Counted): Promise<void> {
  const first = region(page, 'Needs you').locator('li:has(> [data-request])').first();
  await first.locator('.button-run').scrollIntoViewIfNeeded();
  await page.waitForTimeout(READS_MS);
  await first.locator('.button-run:not([aria-disabled])').waitFor();
  const title = (await first.locator('.inbox-row').getAttribute('title')) ?? '';
  await click(first.locator('.button-run'));
  await until(title.split(',', 1)[0] ?? '', ({ kind }) => kind === 'approval.decided');
}

interface Task {
  name: string;
  most: number;
  key?: string;
  viewport?: typeof PHONE;
  run: (counted: Counted) => Promise<unknown>;
}

const TASKS: readonly Task[] = [
  {
    name: 'what is on fire',
    most: 0,
    async run({ page }) {
      await region(page, 'Failed').getByText('21 × provider_auth of Billing').waitFor();
      await region(page, 'Stuck now').getByText('no word from the model for').first().waitFor();
    },
  },
  {
    name: 'why a conversation has no answer',
    most: 1,
    async run({ page, click, filter }) {
      await filter('bill-0');
      await click(line(page, 'bill-0'));
      await detail(page).getByText('Incorrect API key provided').first().waitFor();
    },
  },
  {
    name: 'approve what expires first',
    most: 1,
    key: 'ben',
    run: approveFirst,
  },
  {
    name: 'which agent cost most today, and why',
    most: 2,
    async run({ page, click }) {
      await click(page.getByRole('link', { name: 'Costs' }));
      const agents = page
        .getByRole('table')
        .filter({ has: page.getByRole('columnheader', { name: 'Agent' }) });
      // Just after midnight other agents than the usual one have cost most.
      const costliest = await costliestToday();
      await agents.getByRole('rowheader', { name: costliest }).waitFor();
      const row = agents.getByRole('row').nth(1);
      if (!(await row.innerText()).toLowerCase().startsWith(costliest))
        throw new Error('it is not the first');
      await row.getByText(/^\d+%$/).waitFor();
    },
  },
  {
    name: 'turn 12 beside turn 11',
    most: 3,
    async run({ page, click, filter }) {
      await filter('archive');
      await click(line(page, 'archive'));
      await detail(page).getByRole('heading').first().waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('turn 12');
      await click(page.getByRole('option').filter({ hasText: 'turn 12 of Archivist' }).first());
      await click(page.getByRole('tab', { name: 'Diff' }));
      await detail(page).getByLabel('From turn').waitFor();
      if ((await detail(page).getByLabel('From turn').inputValue()) !== '11') throw new Error('not turn 11');
    },
  },
  {
    name: 'where the cache broke, and why',
    most: 2,
    async run({ page, click, filter }) {
      await filter('archive');
      await click(line(page, 'archive'));
      await click(page.getByRole('link', { name: /^cache \d+%/ }));
      await detail(page).getByText('Cache broke').first().waitFor();
    },
  },
  {
    name: 'a sentence of a customer, with its author',
    most: 1,
    async run({ page, click }) {
      await page.getByRole('searchbox', { name: 'Search all conversations' }).fill('NW-7854 refund');
      const hit = page.locator('.search-all li').filter({ hasText: 'refund-0' }).first();
      await hit.getByText('Ana Torres').or(hit.getByText('Ben Okafor')).first().waitFor();
      await click(hit.getByRole('link').first());
      await detail(page).getByText('The customer asks for a refund of NW-7854').first().waitFor();
    },
  },
  {
    name: 'who waits for whom, down to the culprit',
    most: 1,
    async run({ page, click, filter }) {
      await filter('stamp');
      await click(line(page, 'stamp'));
      await region(page, 'Stuck here').getByText('no word from the model for').first().waitFor();
      const words = (await region(page, 'Stuck here').innerText()).replaceAll(/\s+/g, ' ');
      if (!/Front desk waits for Billing waits for Customs no word/.test(words)) throw new Error(words);
    },
  },
  {
    name: 'try a failed turn again',
    most: 1,
    async run({ page, click, filter }) {
      await filter('report-21');
      await click(
        page.locator('li:has(> .inbox-row[title^="report-21,"])').getByRole('button', { name: 'Retry' }),
      );
      await until(
        'report-21',
        ({ kind, body }) => kind === 'command' && String(Object(body).command) === 'retry',
      );
    },
  },
  {
    name: 'fork',
    most: 2,
    async run({ page, click, filter }) {
      await filter('order-00010');
      await click(line(page, 'order-00010'));
      await click(detail(page).getByRole('button', { name: 'Fork', exact: true }).first());
      await page.waitForURL((url) => /^\/c\/(?!order-00010(\/|$))/.test(url.pathname));
    },
  },
  {
    name: 'run again with a change and compare, at an address',
    most: 3,
    async run({ page, click, filter }) {
      await filter('order-00012');
      await click(line(page, 'order-00012'));
      await click(detail(page).getByRole('button', { name: 'Run again…' }));
      await page.getByRole('dialog').getByLabel('Message', { exact: true }).fill('Is the duty included?');
      await click(page.getByRole('button', { name: 'Run again', exact: true }));
      await page.waitForURL(/\/compare\?runs=/);
    },
  },
  {
    name: 'steer, and see it taken',
    most: 2,
    async run({ page, click, filter }) {
      await filter('scales-3');
      await click(line(page, 'scales-3'));
      await page
        .getByLabel('If busy')
        .or(page.getByRole('combobox', { name: /busy/i }))
        .first()
        .selectOption('steer');
      await page.getByPlaceholder(/^Message/).fill('In kilograms, please.');
      await click(page.getByRole('button', { name: 'Send' }));
      await page.getByRole('log').getByText('In kilograms, please.').first().waitFor();
    },
  },
  {
    name: 'share a view',
    most: 1,
    async run({ page, click, filter }) {
      await filter('bill-10');
      await click(line(page, 'bill-10'));
      await detail(page).getByText('Incorrect API key provided').first().waitFor();
      const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      await other.goto(`${page.url()}#token=${world.keys['reader']}`);
      await detail(other).getByText('Incorrect API key provided').first().waitFor();
      await other.close();
    },
  },
  {
    name: 'what a narrowed key may see and do',
    most: 1,
    key: 'refunds only',
    async run({ page, click }) {
      const lines = await page.locator('.inbox-row').evaluateAll((rows) => rows.map(({ title }) => title));
      if (lines.some((title) => !title.startsWith('refund-'))) throw new Error(lines.join());
      await click(page.locator('.caller summary'));
      await page.locator('.caller-box').getByText('refund-*').waitFor();
    },
  },
  {
    name: 'approve on a phone',
    most: 1,
    key: 'ben',
    viewport: PHONE,
    run: approveFirst,
  },
];

async function costliestToday(): Promise<string> {
  const day = Date.now() - (Date.now() % 86_400_000);
  const headers = { authorization: `Bearer ${world.keys['everything']}` };
  const answer = await fetch(`${world.url}api/costs?from=${day}`, { headers });
  const { agents } = (await answer.json()) as { agents: { name: string }[] };
  return agents[0]?.name ?? '';
}

type Seen = Awaited<ReturnType<typeof world.troupe.events>>['events'][number];

async function until(conversation: string, holds: (event: Seen) => boolean): Promise<void> {
  const end = performance.now() + 20_000;
  while (performance.now() < end) if ((await world.troupe.events(conversation)).events.some(holds)) return;
  throw new Error(`it does not come in ${conversation}`);
}

try {
  const first = await openCounted(browser, 'everything');
  await first.page.getByText(/Counting:/).waitFor({ state: 'hidden', timeout: 300_000 });
  await first.page.close();
  // Its models were called again when the world was opened.
  world.clock.ahead(STUCK_AFTER_MS);
  console.log(`${'task'.padEnd(52)} most  clicks`);
  for (const { name, most, key = 'everything', viewport, run } of TASKS) {
    const counted = await openCounted(browser, key, viewport);
    const problem = await run(counted).then(
      () => null,
      (error: unknown) => String(error).split('\n', 3).join(' '),
    );
    const isOk = problem === null && counted.clicks <= most;
    console.log(
      `${name.padEnd(52)} ${most}     ${counted.clicks}       ${isOk ? 'ok' : `MISSED ${problem ?? ''}`}`,
    );
    if (!isOk) process.exitCode = 1;
    await counted.page.close();
  }
} finally {
  await browser.close();
}
