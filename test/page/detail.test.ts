import { expect } from 'vitest';
import { detail, eventually, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStageWithFailedAgent, FAILED_AGENT } from './failed-agent.ts';
import { ANA } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStageWithFailedAgent(OFFICE);
  await playFailed(made, 'failed');
  return made;
});

pageTest('the details of a failed agent begin with the reason and Resume, without Retry', async () => {
  const page = await browsing.open(`${stage().url}c/${FAILED_AGENT}?agent=critic`);
  const card = detail(page).getByRole('region', { name: 'Why it failed' });
  await card.getByRole('button', { name: 'Resume' }).waitFor();
  expect(await card.innerText()).toMatch(/actor_corrupt[^]*@critic has failed/);
  const next = detail(page).getByRole('region', { name: 'Possible next events' });
  await next.getByRole('button', { name: 'Resume' }).waitFor();
  // No event has the machine's name for it.
  expect(await next.innerText()).not.toMatch(/[A-Z]{4}/);
  expect(await next.innerText()).toMatch(/Resume\s*→ available/);
  const agents = page.getByRole('region', { name: 'Agents' });
  expect(await agents.innerText()).toMatch(/failed · actor_corrupt/);
});

pageTest('a failed turn has Retry in its head and in its card, and nowhere else', async () => {
  const page = await browsing.open(`${stage().url}c/failed?agent=writer`);
  const shown = detail(page);
  await shown.getByRole('region', { name: 'What went wrong' }).waitFor();
  await shown.getByRole('button', { name: 'Pause', exact: true }).first().waitFor();
  expect(await shown.getByRole('button', { name: 'retry' }).count()).toBe(2);
  expect(await shown.innerText()).toMatch(/idle since [^;]*[\d:]+; its last turn failed/);
});

pageTest('a copied turn of a fork links to the original, and is requested from nowhere else', async () => {
  const { body } = await stage().troupe.command(
    { command: 'fork', turn: 'failed:researcher:2' as never, as: 'copied' as never },
    ANA,
  );
  expect(body).toMatchObject({ fork: { conversation: 'copied' } });
  // An error on the console fails the test.
  const page = await browsing.open(`${stage().url}c/copied/t/copied:researcher:1?tab=prompt`);
  const panel = page.getByRole('tabpanel', { name: 'Prompt' });
  await panel.getByText('This turn was copied from').waitFor();
  await panel.getByRole('link', { name: 'turn 1 of failed' }).click();
  await eventually(() => page.url()).toContain('/c/failed/t/failed%3Aresearcher%3A1?tab=prompt');
  await panel.getByRole('region', { name: 'Context window' }).waitFor();
});

pageTest('an address with only an event selects the event and its author, and no agent', async () => {
  const page = await browsing.open(`${stage().url}c/failed?event=1&tab=raw`);
  await detail(page)
    .getByRole('heading', { name: /Event 1\s*\/?\s*Ana/ })
    .waitFor();
  expect(
    await detail(page)
      .getByRole('heading', { name: /Writer/ })
      .count(),
  ).toBe(0);
});

pageTest('Prompt and Diff show the same number for the same growth', async () => {
  const page = await browsing.open(`${stage().url}c/failed/t/failed:researcher:2?tab=prompt`);
  const growth = async () => /\+[\d,]+ tokens/.exec(await page.getByRole('tabpanel').innerText())?.[0];
  await eventually(growth).toMatch(/tokens/);
  const inPrompt = await growth();
  await page.getByRole('tab', { name: 'Diff' }).click();
  await eventually(growth).toBe(inPrompt);
});

pageTest('the reason of a refused command is shown even when its button is gone', async () => {
  await playFailed(stage(), 'gone');
  const page = await browsing.open(`${stage().url}c/gone?agent=writer`);
  const head = detail(page).getByRole('group', { name: 'Available commands' });
  await page.route('**/api/commands', async (route) => {
    // Another caller is first, so this command is refused.
    await stage().troupe.command({ command: 'retry', turn: 'gone:writer:1' as never }, ANA);
    await stage().troupe.idle();
    await head.getByRole('button', { name: 'Retry' }).waitFor({ state: 'detached' });
    await route.continue({ postData: JSON.stringify({ command: 'retry', turn: 'gone:critic:1' }) });
  });
  browsing.expectErrors(/409/);
  await head.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('alert').getByText('gone:critic:1').waitFor();
});
