import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually, happened, pageTest, press, shared, useBrowser } from './browser.ts';
import { playApproval, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(() => openStage(OFFICE));

async function seqs(page: Page): Promise<number[]> {
  const lines = await happened(page).getByRole('group', { name: 'Events' }).getByRole('link').allInnerTexts();
  return lines.map((line) => Number(/\d+/.exec(line)?.[0]));
}

async function head(conversation: string): Promise<number> {
  return (await stage().events(conversation)).length;
}

pageTest(
  'a lost connection is shown and continues where it ended, without lost or repeated events',
  async () => {
    await playIdle(stage(), 'lost');
    browsing.expectErrors(
      /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/,
    );
    const page = await browsing.open(`${stage().url}c/lost?list=events&kind=*`);
    const before = await head('lost');
    await eventually(async () => (await seqs(page)).at(-1)).toBe(before);
    await stage().stop();
    const banner = page.getByRole('status').filter({ hasText: 'Not connected' });
    await banner.waitFor();
    expect(await banner.innerText()).toContain(`as of seq ${before}`);
    // The events that have arrived can still be read.
    expect((await seqs(page)).length).toBeGreaterThan(5);
    await stage().play('lost', ['critic'], 'Is there anything missing meanwhile?');
    const after = await head('lost');
    await stage().start();
    await banner.waitFor({ state: 'detached' });
    await eventually(async () => (await seqs(page)).at(-1)).toBe(after);
    const shown = await seqs(page);
    expect(shown).toEqual(shown.map((_, index) => (shown[0] ?? 0) + index));
    await happened(page).getByText('Is there anything missing meanwhile?').waitFor();
  },
);

pageTest('new events appear without a reload, each once', async () => {
  await playIdle(stage(), 'live');
  const page = await browsing.open(`${stage().url}c/live?list=events&kind=*`);
  const before = await head('live');
  await eventually(async () => (await seqs(page)).at(-1)).toBe(before);
  await Promise.all([1, 2, 3].map((n) => stage().say('live', [], `Remark ${n}`)));
  await eventually(async () => (await seqs(page)).at(-1)).toBe(before + 3);
  expect(
    await happened(page)
      .getByText(/Remark \d/)
      .count(),
  ).toBe(3);
  expect(await page.getByRole('navigation', { name: 'Health' }).innerText()).toContain(`seq ${before + 3}`);
});

pageTest('a new conversation appears in the list', async () => {
  const page = await browsing.open(stage().url);
  await page.getByRole('heading', { name: 'Conversations' }).waitFor();
  await stage().play('brand-new', ['critic'], 'Is there anything missing?');
  await page.getByRole('link', { name: /brand-new/ }).waitFor();
});

pageTest(
  'home says that the server is gone, how old the list is, and offers nothing; and it comes back',
  async () => {
    await playApproval(stage(), 'urgent');
    browsing.expectErrors(/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
    const page = await browsing.open(stage().url);
    const approve = page.getByRole('button', { name: 'Approve' });
    await approve.waitFor();
    await eventually(() => approve.getAttribute('aria-disabled')).toBeNull();
    const health = page.getByRole('navigation', { name: 'Health' });
    await eventually(() => health.innerText()).toContain('Live');
    await stage().stop();
    const banner = page.getByRole('status').filter({ hasText: 'Not connected' });
    await banner.waitFor();
    const since = /since (\S+):/.exec(await banner.innerText())?.[1];
    // It is asked again every second, each time in vain.
    await eventually(() => banner.innerText()).toMatch(/is \d+ seconds old/);
    expect(await banner.innerText()).toContain(`since ${since}:`);
    expect(await health.innerText()).toContain('Lost');
    expect(await approve.getAttribute('aria-disabled')).toBe('true');
    expect(await page.getByRole('textbox', { name: 'Agent' }).isDisabled()).toBe(true);
    await approve.click({ force: true });
    await stage().start();
    await banner.waitFor({ state: 'detached' });
    await eventually(() => health.innerText()).toContain('Live');
    await press(approve);
    const decided = await stage().until('urgent', ({ kind }) => kind === 'approval.decided');
    expect((await stage().events('urgent')).filter(({ kind }) => kind === decided.kind)).toHaveLength(1);
  },
);
