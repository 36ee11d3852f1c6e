import path from 'node:path';
import { expect } from 'vitest';
import * as z from 'zod';
import { defineProvider } from '../../src/providers/define-provider.ts';
import type { ModelEvent } from '../../src/providers/provider.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { eventually, pageTest, useBrowser } from './browser.ts';
import { EXAMPLES, openBuiltWindow } from './built-window.ts';

const browsing = useBrowser();

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const words = (delta: string): ModelEvent => ({ type: 'text', delta });
const call = (id: string, name: string, args: string): ModelEvent => ({
  type: 'call',
  call: { id, name, args },
});
const refund = defineTool({
  name: 'refund',
  description: 'Pays an amount back.',
  schema: z.object({ euros: z.number() }),
  needsApproval: true,
  run: ({ euros }) => `${euros} euros are on their way back.`,
});

/** A desk that hands over to billing, whose last answer stops in the middle until it is let go. */
function company() {
  const gate = Promise.withResolvers<void>();
  const isPaid = (messages: readonly { content?: unknown }[]) =>
    JSON.stringify(messages).includes('on their way back');
  const provider = defineProvider({
    name: 'gated',
    async *read({ messages, trace }) {
      const isLast = trace.agent === 'billing' && isPaid(messages);
      if (trace.agent === 'desk') {
        yield words('I hand you over.');
        yield call('k1', 'handoff', '{"to":"billing","goal":"Refund it."}');
      } else if (isLast) {
        yield words('Done: the money ');
        await gate.promise;
        yield words('is on its way.');
      } else {
        yield words('You were charged twice.');
        yield call('k2', 'refund', '{"euros":12}');
      }
      yield { type: 'done', stop: trace.agent === 'desk' || !isLast ? 'calls' : 'end', usage: NOTHING };
    },
  });
  const model = { provider: 'custom', adapter: 'gated', model: 'm' } as const;
  const agents = [
    { id: 'desk', name: 'Desk', tools: ['handoff'], ...model },
    { id: 'billing', name: 'Billing', tools: ['refund'], ...model },
  ];
  const defaults = { respondWhenUnaddressed: 'desk' };
  const definition = {
    agents,
    providers: { gated: provider },
    tools: [refund],
    defaults,
    doors: ['ag-ui' as const],
  };
  return { definition, letGo: () => gate.resolve() };
}

pageTest(
  'a window of assistant-ui tells agents apart, gives an approval, and has every word once after a reload in the middle of an answer',
  async () => {
    const { definition, letGo } = company();
    const troupe = await createTroupe(definition, { data: ':memory:', onWarning: () => {} });
    await using window = await openBuiltWindow(path.join(EXAMPLES, 'ag-ui-window'), troupe);
    const page = await browsing.open(window.url);
    const shown = () => page.locator('section h3, section p').allInnerTexts();
    const begun = [
      'You',
      'I was charged twice.',
      'Desk',
      'I hand you over.',
      'Billing',
      'You were charged twice.',
    ];
    await page.getByLabel('Message').fill('I was charged twice.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await shown()).toEqual(begun);
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await shown()).toEqual(begun);
    await page.getByRole('button', { name: 'Approve' }).click();
    const half = [...begun, 'Billing', 'Done: the money'];
    await eventually(shown).toEqual(half);
    await page.reload();
    await eventually(shown).toEqual(half);
    letGo();
    const whole = [...begun, 'Billing', 'Done: the money is on its way.'];
    await eventually(shown).toEqual(whole);
    await page.reload();
    await eventually(shown).toEqual(whole);
    const { events } = await troupe.events('support-18');
    expect(events.filter(({ kind }) => kind === 'approval.decided')).toHaveLength(1);
    await page.close();
  },
);
