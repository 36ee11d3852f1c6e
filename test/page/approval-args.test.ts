import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { eventually, happened, pageTest, press, shared, useBrowser } from './browser.ts';
import { BEN, openStage, type Play } from './stage.ts';

const ASKED = { to: 'ana', euros: 120, urgent: true, reason: 'crates' };
const LARGE = '{"account":12345678901234567890,"euros":1}';

/** Ran, in the order of the calls. */
const ran: object[] = [];

function payment(name: string, schema: z.ZodType) {
  return defineTool({
    name,
    description: 'Pays somebody.',
    schema,
    needsApproval: true,
    run: (args) => {
      ran.push(args as object);
      return 'is paid';
    },
  });
}

const COUNTER: Play = {
  company: (baseUrl) => ({
    agents: [
      {
        id: 'cashier',
        provider: 'openai-compatible',
        model: 'cashier',
        baseUrl,
        apiKeyEnv: 'KEY',
        instructions: 'Pay.',
        tools: ['pay', 'pay_parts', 'pay_account'],
      },
    ],
    tools: [
      payment(
        'pay',
        z.object({ to: z.string(), euros: z.number().max(200), urgent: z.boolean(), reason: z.string() }),
      ),
      payment('pay_parts', z.object({ parts: z.array(z.number()) })),
      // As a tool of an MCP server: it is passed every digit.
      {
        ...payment('pay_account', z.object({ account: z.unknown(), euros: z.number() })),
        takesExact: true,
      },
    ],
  }),
  lines: [
    { agent: 'cashier', hears: 'hello', says: { text: 'Good day.' } },
    { agent: 'cashier', hears: 'is paid', says: { text: 'All paid.' } },
    { agent: 'cashier', hears: 'in parts', says: call('pay_parts', '{"parts":[10,20]}') },
    { agent: 'cashier', hears: 'by account', says: call('pay_account', LARGE) },
    { agent: 'cashier', hears: 'pay', says: call('pay', JSON.stringify(ASKED)) },
  ],
};

function call(name: string, args: string) {
  return { calls: [{ name, args }] };
}

const browsing = useBrowser();
const stage = shared(() => openStage(COUNTER));

async function openEditor(conversation: string, words = 'pay'): Promise<{ page: Page; waiting: Locator }> {
  ran.length = 0;
  await stage().play(conversation, ['cashier'], words);
  const page = await browsing.open(`${stage().url}c/${conversation}`);
  const waiting = page.getByRole('region', { name: 'Waiting for you' });
  await waiting.getByRole('button', { name: 'Change the arguments' }).click();
  return { page, waiting };
}

function field(waiting: Locator, name: string): Locator {
  return waiting.getByRole('textbox', { name, exact: true });
}

async function hasFocus(page: Page, element: Locator): Promise<boolean> {
  return (await element.and(page.locator(':focus')).count()) === 1;
}

async function decision(conversation: string) {
  return stage().until(conversation, ({ kind }) => kind === 'approval.decided');
}

/** What the page sends when the button is pressed. */
async function sentBy(page: Page, button: Locator): Promise<Record<string, unknown>> {
  const [request] = await Promise.all([page.waitForRequest('**/api/commands'), press(button)]);
  return request.postDataJSON() as Record<string, unknown>;
}

pageTest('an approval carries the arguments that were changed in their fields', async () => {
  const { page, waiting } = await openEditor('fields');
  await field(waiting, 'euros').fill('80.5');
  await waiting.getByRole('checkbox', { name: 'urgent' }).uncheck();
  const sent = await sentBy(page, waiting.getByRole('button', { name: 'Approve with changes' }));
  const changed = { ...ASKED, euros: 80.5, urgent: false };
  expect(sent).toMatchObject({ command: 'decide', approved: true, args: changed });
  await happened(page).getByText('All paid.').first().waitFor();
  expect(await decision('fields')).toMatchObject({ body: { args: JSON.stringify(changed) } });
  expect(ran).toEqual([changed]);
});

pageTest('arguments that were not changed, or changed back, are not sent', async () => {
  const { page, waiting } = await openEditor('same');
  await field(waiting, 'euros').fill('80');
  await field(waiting, 'euros').fill(' 120 ');
  const sent = await sentBy(page, waiting.getByRole('button', { name: 'Approve', exact: true }));
  expect(sent).not.toHaveProperty('args');
  expect((await decision('same')).body).not.toHaveProperty('args');
});

pageTest('a closed editor changes nothing, and a denial carries no arguments', async () => {
  const { page, waiting } = await openEditor('closed');
  await field(waiting, 'to').fill('ben');
  await waiting.getByRole('button', { name: 'Approve with changes' }).waitFor();
  // They stand once: in the editor, or as the agent wrote them.
  expect(await waiting.getByRole('definition').count()).toBe(0);
  await waiting.getByRole('button', { name: 'Keep the arguments' }).click();
  await waiting.getByRole('definition').filter({ hasText: 'ana' }).waitFor();
  await waiting.getByRole('button', { name: 'Approve', exact: true }).waitFor();
  await waiting.getByRole('button', { name: 'Change the arguments' }).click();
  expect(await field(waiting, 'to').inputValue()).toBe('ana');
  await field(waiting, 'to').fill('ben');
  const sent = await sentBy(page, waiting.getByRole('button', { name: 'Deny' }));
  expect(sent).toMatchObject({ approved: false });
  expect(sent).not.toHaveProperty('args');
});

pageTest(
  'arguments with an inner structure are changed as JSON; what is wrong is said beside it',
  async () => {
    const { page, waiting } = await openEditor('json', 'pay in parts');
    const json = field(waiting, 'JSON');
    expect(JSON.parse(await json.inputValue())).toEqual({ parts: [10, 20] });
    await json.fill('{"parts":[1,');
    await waiting.getByText('Not JSON:').waitFor();
    expect(await json.getAttribute('aria-invalid')).toBe('true');
    const says = await json.getAttribute('aria-describedby');
    expect(await page.locator(`[id="${says}"]`).innerText()).toMatch(/^Not JSON:/);
    expect(await waiting.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(false);
    await json.fill('[1, 2]');
    await waiting.getByText('Write a JSON object').waitFor();
    await json.fill('{ "parts": [1, 2] }');
    await press(waiting.getByRole('button', { name: 'Approve with changes' }));
    await happened(page).getByText('All paid.').first().waitFor();
    expect(ran).toEqual([{ parts: [1, 2] }]);
  },
);

pageTest('a number that is none is said beside its field', async () => {
  const { waiting } = await openEditor('number');
  await field(waiting, 'euros').fill('a lot');
  await waiting.getByText('Write a number').waitFor();
  expect(await field(waiting, 'euros').getAttribute('aria-invalid')).toBe('true');
  expect(await field(waiting, 'to').getAttribute('aria-invalid')).toBe('false');
  expect(await waiting.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(false);
  // As JSON nothing that was typed is lost.
  await waiting.getByRole('button', { name: 'Edit as JSON' }).press('Enter');
  expect(JSON.parse(await field(waiting, 'JSON').inputValue())).toEqual({ ...ASKED, euros: 'a lot' });
  await field(waiting, 'JSON').fill(JSON.stringify({ ...ASKED, euros: 7 }));
  await waiting.getByRole('button', { name: 'Edit as fields' }).click();
  expect(await field(waiting, 'euros').inputValue()).toBe('7');
});

pageTest('a number that the page cannot hold exactly is not changed without a word', async () => {
  const { waiting } = await openEditor('large', 'pay by account');
  expect(await field(waiting, 'JSON').inputValue()).toBe(LARGE);
  await waiting.getByText('A number is too large').waitFor();
  expect(await waiting.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(false);
  await waiting.getByRole('button', { name: 'Keep the arguments' }).click();
  await eventually(() => waiting.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(true);
});

pageTest('a refusal of the server is shown in place, and what was typed can be mended', async () => {
  const { page, waiting } = await openEditor('refused');
  browsing.expectErrors(/400/);
  await field(waiting, 'euros').fill('900');
  await press(waiting.getByRole('button', { name: 'Approve with changes' }));
  await waiting.getByText(/do not fit the schema of pay: .*euros/).waitFor();
  expect(await field(waiting, 'euros').inputValue()).toBe('900');
  await field(waiting, 'euros').fill('90');
  await press(waiting.getByRole('button', { name: 'Approve with changes' }));
  await happened(page).getByText('All paid.').first().waitFor();
  expect(ran).toEqual([{ ...ASKED, euros: 90 }]);
});

pageTest('what was typed outlasts live events, and a look at the past', async () => {
  const { page, waiting } = await openEditor('live');
  await field(waiting, 'reason').fill('crates of tea');
  await waiting.getByRole('textbox', { name: 'Note to the agent' }).fill('half of it');
  await field(waiting, 'reason').focus();
  await stage().play('live', ['cashier'], 'hello', { author: BEN });
  await happened(page).getByText('Good day.').first().waitFor();
  expect(await hasFocus(page, field(waiting, 'reason'))).toBe(true);
  expect(await field(waiting, 'reason').inputValue()).toBe('crates of tea');
  await page.getByRole('button', { name: 'First event' }).click();
  await waiting.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Go live' }).first().click();
  await waiting.waitFor();
  expect(await field(waiting, 'reason').inputValue()).toBe('crates of tea');
  expect(await waiting.getByRole('textbox', { name: 'Note to the agent' }).inputValue()).toBe('half of it');
});

pageTest('the editor is used with the keyboard alone', async () => {
  await stage().play('keys', ['cashier'], 'pay');
  const page = await browsing.open(`${stage().url}c/keys`);
  const waiting = page.getByRole('region', { name: 'Waiting for you' });
  await waiting.getByRole('button', { name: 'Change the arguments' }).focus();
  await page.keyboard.press('Enter');
  const to = field(waiting, 'to');
  await eventually(() => hasFocus(page, to)).toBe(true);
  // Letters are typed and are no commands of the page.
  await page.keyboard.press('End');
  await page.keyboard.type(' dj');
  expect(await to.inputValue()).toBe('ana dj');
  for (let presses = 0; presses < 5; presses++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await decision('keys')).toMatchObject({ body: { outcome: 'approved' } });
  expect((await decision('keys')).body).toMatchObject({
    args: JSON.stringify({ ...ASKED, to: 'ana dj' }),
  });
});
