import path from 'node:path';
import { expect } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../../src/tools/tool.ts';
import { company } from '../../../test/support/company.ts';
import { openBuiltWindow } from '../../../test/page/built-window.ts';
import { eventually, pageTest, useBrowser } from '../../../test/page/browser.ts';

const browsing = useBrowser();
const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  schema: z.object({ order: z.number() }),
  needsApproval: true,
  run: ({ order }) => `order ${order} is refunded`,
});

pageTest(
  'two pages show who says what as it is written, and a refused key; an approval that one gives is gone in the other',
  async () => {
    await using stage = await company(['desk', 'billing'], {
      tools: [refund],
      agents: {
        desk: { name: 'Desk', tools: ['handoff'] },
        billing: { name: 'Billing', tools: ['refund'] },
      },
      answers: {
        desk: [
          {
            text: 'One moment.',
            calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund order 4"}' }],
          },
        ],
        billing: [
          { text: 'I refund it.', calls: [{ name: 'refund', args: '{"order":4}' }] },
          'Your money is back.',
        ],
      },
    });
    await using room = await openBuiltWindow(path.join(import.meta.dirname, 'page'), stage.troupe, {
      authenticate: (key) => stage.troupe.authenticate(key),
    });
    const [one, other] = [await browsing.open(room.url), await browsing.open(room.url)];
    const shown = (page: typeof one) => () => page.locator('li').allInnerTexts();
    await one.getByLabel('Message').fill('Refund order 4.');
    await one.getByRole('button', { name: 'Send' }).click();
    const before = ['User: Refund order 4.', 'Desk: One moment.', 'Billing: I refund it.'];
    for (const page of [one, other]) {
      await page.getByRole('button', { name: 'Approve refund {"order":4}' }).waitFor();
      await eventually(shown(page)).toEqual(before);
      expect(await page.locator('output').innerText()).toBe('open');
    }
    browsing.expectErrors(/status of 401/);
    await other.getByLabel('Key').fill('wrong');
    const refusal = await other.getByRole('alert').innerText();
    expect(refusal).toMatch(/key|token/i);
    await eventually(() => other.locator('output').innerText()).toBe(refusal);
    expect(await shown(other)()).toEqual([]);
    expect(await other.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    await other.getByLabel('Key').fill('');
    await other.getByRole('button', { name: 'Approve' }).waitFor();
    await eventually(() => other.locator('output').innerText()).toBe('open');
    expect(await other.getByRole('alert').count()).toBe(0);

    await one.getByRole('button', { name: 'Approve' }).click();
    await other.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' });
    for (const page of [one, other])
      await eventually(shown(page)).toEqual([...before, 'Billing: Your money is back.']);
    // Their streams end before the server does.
    await one.close();
    await other.close();
  },
);
