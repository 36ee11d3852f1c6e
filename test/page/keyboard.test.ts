import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed, playIdle, playQuestion } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

/** These tests never use the mouse. */
const browsing = useBrowser();
const stage = shared(() => openStage(OFFICE));
const MOST_TABS = 120;

/** Presses Tab until the element with this name has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let presses = 0; presses < MOST_TABS; presses++) {
    await page.keyboard.press('Tab');
    const text = await page.evaluate<string>(
      '`${document.activeElement?.getAttribute("aria-label") ?? ""} ${document.activeElement?.textContent ?? ""}`',
    );
    if (name.test(text)) return;
  }
  throw new Error(`Tab never comes to ${name}`);
}

async function openFailed(conversation: string): Promise<Page> {
  await playFailed(stage(), conversation);
  const page = await browsing.open(`${stage().url}c/${conversation}`);
  await happened(page).getByText('provider_quota').first().waitFor();
  return page;
}

pageTest('by keyboard alone: move between turns and between tabs', async () => {
  const page = await openFailed('keys-turns');
  await page.keyboard.press('[');
  const first = await detail(page).getByRole('heading').first().innerText();
  await page.keyboard.press('[');
  await eventually(() => detail(page).getByRole('heading').first().innerText()).not.toBe(first);
  await page.keyboard.press(']');
  await eventually(() => detail(page).getByRole('heading').first().innerText()).toBe(first);
  for (const [key, tab] of [
    ['2', 'Prompt'],
    ['3', 'Diff'],
    ['4', 'Tools'],
    ['5', 'Events'],
    ['6', 'Raw'],
    ['1', 'State'],
  ] as const) {
    await page.keyboard.press(key);
    await eventually(() => page.getByRole('tab', { selected: true }).innerText()).toBe(tab);
  }
  await page.getByRole('tab', { selected: true }).focus();
  await page.keyboard.press('ArrowRight');
  await eventually(() => page.getByRole('tab', { selected: true }).innerText()).toBe('Prompt');
});

pageTest('by keyboard alone: find a failed turn and retry it', async () => {
  const page = await openFailed('keys-retry');
  await page.keyboard.press('f');
  await eventually(() => happened(page).locator('[data-turn]').count()).toBe(1);
  await page.keyboard.press('j');
  await tabTo(page, /^\s*Retry$/);
  await page.keyboard.press('Enter');
  await stage().until('keys-retry', ({ kind, body }) => kind === 'command' && body.command === 'retry');
  await page.getByText('A retry was requested').first().waitFor();
  await page.keyboard.press('f');
  await happened(page).getByText('From Monday on').first().waitFor();
});

pageTest('by keyboard alone: go back in time and return to live', async () => {
  const page = await openFailed('keys-time');
  const slider = page.getByRole('slider', { name: 'Last event shown' });
  await page.keyboard.press('Space');
  await page.getByText('The past.').waitFor();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await eventually(() => slider.inputValue()).toBe('22');
  await page.keyboard.press('l');
  await page.getByText('The past.').waitFor({ state: 'detached' });
});

pageTest('by keyboard alone: answer a question and write a message', async () => {
  await playQuestion(stage(), 'keys-answer');
  const page = await browsing.open(`${stage().url}c/keys-answer`);
  await page.getByRole('region', { name: 'Waiting for you' }).waitFor();
  await tabTo(page, /^\s*calm$/);
  await page.keyboard.press('Space');
  await happened(page).getByText('Then calm it is').first().waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('c');
  await eventually(() => page.evaluate<string>('document.activeElement.id')).toBe('composer');
  await page.keyboard.type('Thank you.');
  await page.keyboard.press('Enter');
  await stage().until(
    'keys-answer',
    (event) => event.kind === 'message' && event.body.content === 'Thank you.',
  );
});

pageTest('by keyboard alone: open another conversation, the list of keys and the search', async () => {
  await playIdle(stage(), 'keys-other');
  const page = await openFailed('keys-palette');
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', { name: 'Keys' });
  await help.getByText('light or dark').waitFor();
  await page.keyboard.press('Escape');
  await help.waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Palette' }).getByRole('combobox').waitFor();
  await page.keyboard.type('conversations keys-other');
  const found = page.getByRole('listbox', { name: 'Results' }).getByRole('option');
  await eventually(() => found.first().innerText()).toContain('keys-other');
  await page.keyboard.press('Enter');
  await eventually(() => page.url()).toContain('/c/keys-other');
  await page.keyboard.press('/');
  await page.keyboard.type('handed over');
  await eventually(() => happened(page).getByRole('searchbox').inputValue()).toBe('handed over');
  await eventually(() => new URL(page.url()).searchParams.get('q')).toBe('handed over');
});

pageTest('a dialog that opens while another one closes stays open', async () => {
  const page = await openFailed('keys-quick');
  for (const name of ['Keys', 'Palette']) {
    await page.keyboard.press(name === 'Keys' ? '?' : 'Control+k');
    await page.getByRole('dialog', { name }).waitFor();
    // Browsers report the end of a dialog with a delay. Here a key comes in between.
    await page.evaluate(`{
      const over = document.querySelector('dialog');
      if (over.dispatchEvent(new Event('cancel', { cancelable: true }))) over.close();
      dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
    }`);
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 300))');
    expect(await page.getByRole('dialog', { name: 'Palette' }).isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
});

pageTest('the element with the focus is visibly marked', async () => {
  const page = await openFailed('keys-focus');
  for (let presses = 0; presses < 20; presses++) {
    await page.keyboard.press('Tab');
    const outline = await page.evaluate<string>(
      '(({ outlineStyle, outlineWidth, boxShadow }) => `${outlineStyle} ${outlineWidth} ${boxShadow}`)(getComputedStyle(document.activeElement))',
    );
    const name = await page.evaluate<string>('document.activeElement.outerHTML.slice(0, 120)');
    expect(outline, name).not.toMatch(/^none \S+ none$/);
  }
});
