import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Scope } from '../../src/library/access/index.ts';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { abortAll } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { BEN, openStage } from './stage.ts';
import { isOpen } from './views.ts';

const browsing = useBrowser();
const stage = shared(() => openStage(OFFICE, { needsKey: true }));

const EVERYTHING: Scope[] = ['read', 'write', 'operate', 'erase'];

/** Opens a path of the page with a new key. */
async function openWith(
  path: string,
  key: { scopes?: Scope[]; conversations?: string[] } = {},
): Promise<Page> {
  const { secret } = await stage().troupe.keys.create({ name: 'test', scopes: EVERYTHING, ...key });
  const page = await browsing.open(`${stage().url}${path}#token=${secret}`);
  await isOpen(page);
  return page;
}

async function choose(page: Page, words: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Agent, turn/ }).fill(words);
  await page.getByRole('option', { name: words }).click();
}

pageTest(
  'a person is erased once the id is typed: the receipt is shown, and every open view has holes',
  async () => {
    await stage().play('zebra', ['critic'], 'Is there anything missing? The zebra Quagmire is.', {
      author: BEN,
    });
    const page = await openWith('c/zebra?list=events&kind=*');
    const reader = await openWith('c/zebra');
    await happened(page).getByText('Quagmire').first().waitFor();
    await happened(reader).getByText('Quagmire').first().waitFor();
    await choose(page, 'Erase what Ben has said…');
    const dialog = page.getByRole('dialog', { name: 'Erase what Ben has said' });
    await dialog.getByText('What will be gone').waitFor();
    await dialog.getByText('backups').waitFor();
    const button = dialog.getByRole('button', { name: 'Erase for good' });
    const typed = dialog.getByRole('textbox', { name: 'Type ben to confirm' });
    await typed.fill('Ben');
    expect(await button.isDisabled()).toBe(true);
    await typed.fill('ben');
    await button.click();
    await dialog.getByRole('heading', { name: 'Erased', exact: true }).waitFor();
    await eventually(() => dialog.innerText()).toMatch(
      /1 conversation, \d+ events[^]*What lies outside[^]*backups/,
    );
    await dialog.getByRole('button', { name: 'Close' }).click();
    await happened(page).getByText('words erased').first().waitFor();
    await happened(reader).getByText('words erased').first().waitFor();
    for (const view of [page, reader])
      expect(await view.locator('#page').innerText()).not.toContain('Quagmire');
    await page.goto(`${stage().url}c/zebra/t/zebra:critic:1?tab=prompt`);
    await detail(page).getByText('erased', { exact: true }).first().waitFor();
    expect(await detail(page).innerText()).toContain('Words of what was sent are erased');
  },
);

pageTest('a conversation is erased once its id is typed, and the page goes home', async () => {
  await stage().play('doomed', ['critic'], 'Is there anything missing?');
  const page = await openWith('c/doomed');
  browsing.expectErrors(/404/);
  await happened(page).getByText('Nobody has said').first().waitFor();
  await choose(page, 'Erase this conversation…');
  const dialog = page.getByRole('dialog', { name: 'Erase this conversation' });
  await dialog.getByRole('textbox', { name: 'Type doomed to confirm' }).fill('doomed');
  await dialog.getByRole('button', { name: 'Erase for good' }).click();
  await dialog.getByRole('heading', { name: 'Erased', exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('main', { name: 'Conversations' }).waitFor();
  await expect(stage().troupe.events('doomed')).rejects.toThrow(/no conversation/);
});

pageTest('erasing is refused in words while an agent is at work, and nothing is gone', async () => {
  await stage().say('busy', ['researcher'], 'What do the tide tables say for the week?');
  await stage().until('busy', ({ kind }) => kind === 'turn.started');
  const page = await openWith('c/busy');
  browsing.expectErrors(/409/);
  await choose(page, 'Erase this conversation…');
  const dialog = page.getByRole('dialog', { name: 'Erase this conversation' });
  await dialog.getByRole('textbox', { name: /to confirm/ }).fill('busy');
  await dialog.getByRole('button', { name: 'Erase for good' }).click();
  await eventually(() => dialog.getByRole('alert').innerText()).toMatch(/researcher|work/);
  expect(await dialog.getByRole('button', { name: 'Erase for good' }).isEnabled()).toBe(true);
  await abortAll(stage(), 'busy');
});

pageTest(
  'erasing is not offered to a key without the scope, nor to one of certain conversations',
  async () => {
    await stage().play('kept', ['critic'], 'Is there anything missing?');
    for (const key of [{ scopes: ['read', 'write', 'operate'] as Scope[] }, { conversations: ['kept'] }]) {
      const page = await openWith('c/kept', key);
      // The server has said who it is.
      await page.locator('.caller').waitFor();
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: /Agent, turn/ }).fill('as');
      await page.getByRole('option', { name: 'Export as HTML' }).waitFor();
      expect(await page.getByRole('option', { name: 'Erase what Ana has said…' }).count()).toBe(0);
    }
    const may = await openWith('c/kept?list=events&kind=*&event=1&tab=events');
    await may.getByRole('button', { name: 'Erase what Ana has said…' }).click();
    await may.getByRole('dialog', { name: 'Erase what Ana has said' }).waitFor();
  },
);
