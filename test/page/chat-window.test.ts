import path from 'node:path';
import { expect, vi } from 'vitest';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { eventually, pageTest, useBrowser } from './browser.ts';
import { EXAMPLES, openBuiltWindow } from './built-window.ts';

const browsing = useBrowser();

/** The company of the examples of windows, on its script. */
async function openCompany() {
  vi.stubEnv('TROUPE_PROVIDER', 'scripted');
  const { troupe: definition } = await import('../../examples/chat-window/agents.ts');
  vi.unstubAllEnvs();
  return createTroupe(definition, { data: ':memory:', onWarning: () => {} });
}

pageTest(
  'the chat window shows agents by name, gives an approval, and is the same after a reload',
  async () => {
    const troupe = await openCompany();
    await using window = await openBuiltWindow(path.join(EXAMPLES, 'chat-window'), troupe);
    const page = await browsing.open(window.url);
    const shown = () => page.locator('section h3, section p').allInnerTexts();
    await page.getByLabel('Message').fill('I was charged twice.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    const before = [
      'I was charged twice.',
      'Desk',
      'I hand you over to billing.',
      'Billing',
      'You were charged twice.',
    ];
    expect(await shown()).toEqual(before);
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await shown()).toEqual(before);
    await page.getByRole('button', { name: 'Approve' }).click();
    const after = [...before, 'Billing', 'Done: the money is on its way back to you.'];
    await eventually(shown).toEqual(after);
    await page.reload();
    await eventually(shown).toEqual(after);
    const { events } = await troupe.events('support-17');
    expect(events.filter(({ kind }) => kind === 'approval.decided')).toHaveLength(1);
    // Its stream is open: a server that ends under a page is a fault of the page's.
    await page.close();
  },
);
