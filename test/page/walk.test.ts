import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

/** Directory for screenshots of the walk, set by `npm run screenshots`. Without it none are taken. */
const PICTURES = process.env['TROUPE_WALK_PICTURES'];

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'crates-of-may');
  return made;
});

let taken = 0;

async function picture(page: Page, what: string): Promise<void> {
  taken += 1;
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: path.join(PICTURES, `walk-${taken}-${what}.png`) });
}

pageTest(
  'a newcomer finds out who is stuck and why and what made a prompt 4k larger, and retries the turn',
  async () => {
    const page = await browsing.open(stage().url);

    // Which conversation is stuck? The first group of the list shows it.
    const line = page.getByRole('region', { name: 'Failed', exact: true }).getByRole('link');
    await eventually(() => line.innerText()).toMatch(/crates-of-may/);
    await picture(page, 'list');
    await line.click();

    // Which agent, and why? The first in the list of agents; its turn has the vendor's error.
    const first = page.getByRole('region', { name: 'Agents' }).getByRole('listitem').first();
    await eventually(() => first.innerText()).toMatch(/failed[^]*Writer/);
    await eventually(() => happened(page).innerText()).toMatch(
      /Writer[^]*failed[^]*provider_quota[^]*exceeded your current quota/,
    );
    await picture(page, 'who-is-stuck');

    // What made the prompt of the researcher's second turn so much larger than that of the first?
    await happened(page).getByRole('link', { name: 'Turns' }).click();
    await happened(page)
      .getByRole('link', { name: /2\s*Researcher/ })
      .click();
    await detail(page).getByRole('tab', { name: 'Prompt' }).click();
    const prompt = page.getByRole('tabpanel', { name: 'Prompt' });
    await eventually(() => prompt.innerText()).toMatch(/\+4,\d{3} tokens[^]*since turn 1/);
    const blamed = prompt.getByRole('listitem').first();
    await eventually(() => blamed.innerText()).toMatch(/event 10[^]*tool\.result read_report[^]*\+4,\d{3}/);
    await picture(page, 'what-grew');
    await blamed.getByRole('link').click();
    await eventually(() => detail(page).innerText()).toMatch(/read_report/);
    await eventually(() => page.url()).toContain('event=10');
    await picture(page, 'the-event');

    // Retry the failed turn.
    await first.getByRole('link').click();
    const again = detail(page)
      .getByRole('group', { name: 'Available commands' })
      .getByRole('button', { name: 'Retry' });
    await again.click();
    await eventually(() => happened(page).innerText()).toMatch(/From Monday on, small shippers pay half/);
    await eventually(() => page.getByRole('navigation', { name: 'Health' }).innerText()).not.toContain(
      'failed',
    );
    await picture(page, 'tried-again');
    const commands = (await stage().events('crates-of-may')).filter(({ kind }) => kind === 'command');
    expect(commands).toMatchObject([{ body: { command: 'retry', turn: 'crates-of-may:writer:1' } }]);
  },
);
