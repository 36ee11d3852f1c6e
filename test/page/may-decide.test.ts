import * as z from 'zod';
import { expect } from 'vitest';
import type { Scope } from '../../src/library/access/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { eventually, pageTest, press, shared, useBrowser } from './browser.ts';
import { ANA, BEN, openStage, type Play } from './stage.ts';

const LAWYER: Play = {
  company: (baseUrl) => ({
    agents: [
      {
        id: 'payer',
        provider: 'openai-compatible',
        model: 'payer',
        baseUrl,
        apiKeyEnv: 'KEY',
        tools: ['pay'],
      },
    ],
    tools: [
      defineTool({
        name: 'pay',
        description: 'Pays.',
        schema: z.object({ euros: z.number() }),
        needsApproval: { by: ['ben'] },
        run: ({ euros }) => `paid ${euros}`,
      }),
    ],
  }),
  lines: [
    { agent: 'payer', hears: 'Pay', says: { calls: [{ name: 'pay', args: '{"euros":5}' }] } },
    { agent: 'payer', hears: 'paid 5', says: { text: 'It is paid.' } },
  ],
};

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(LAWYER, { needsKey: true });
  await made.play('bill', ['payer'], 'Pay the pilot.');
  return made;
});

async function openAs(author: typeof ANA, path: string, scopes: Scope[] = ['read', 'write']) {
  const { secret } = await stage().troupe.keys.create({ name: author.id, scopes, author });
  return browsing.open(`${stage().url}${path}#token=${secret}`);
}

const DECISIONS = { name: /^(Approve|Deny|Change)/ };

pageTest(
  'an approval has buttons for those who may decide it alone, at home and in its conversation',
  async () => {
    for (const path of ['', 'c/bill', 'c/bill?list=turns']) {
      const ana = await openAs(ANA, path);
      await ana.getByText('ben may, not you.').waitFor();
      expect(await ana.getByRole('button', DECISIONS).count()).toBe(0);
    }
    const reader = await openAs(BEN, 'c/bill', ['read']);
    await reader.getByText('ben may, with a key that has the scope write; yours has not.').waitFor();
    expect(await reader.getByRole('button', DECISIONS).count()).toBe(0);
    const home = await openAs(BEN, '');
    await home.getByRole('button', { name: 'Approve' }).waitFor();
    const ben = await openAs(BEN, 'c/bill');
    await press(ben.getByRole('button', { name: 'Approve' }));
    await ben.getByText('It is paid.').first().waitFor();
    await eventually(() => home.getByRole('button', DECISIONS).count()).toBe(0);
  },
);
