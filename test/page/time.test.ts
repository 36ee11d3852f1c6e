import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playFailed(made, 'failed');
  await playIdle(made, 'idle');
  return made;
});

pageTest('the scrubber shows the whole page as it was, and Go live returns to the present', async () => {
  const page = await browsing.open(`${stage().url}c/failed`);
  const agents = page.getByRole('region', { name: 'Agents' });
  await eventually(() => agents.innerText()).toMatch(/Writer[^]*Researcher[^]*Critic/);
  const slider = page.getByRole('slider', { name: 'Last event shown' });
  await slider.fill('8');
  await page.getByText('The past.').waitFor();
  // At that time only the researcher had a message, and was running.
  await eventually(() => agents.innerText()).toMatch(/^Agents 1[^]*running[^]*Researcher/);
  await eventually(() => agents.innerText()).not.toMatch(/Writer|Critic/);
  const health = await page.getByRole('navigation', { name: 'Health' }).innerText();
  expect(health).toMatch(/Past[^]*seq 8 of 24/);
  expect(health).not.toContain('failed');
  const list = happened(page);
  expect(await list.innerText()).not.toContain('Nobody has said when it begins.');
  expect(new URL(page.url()).searchParams.get('at')).toBe('8');
  await page.getByRole('contentinfo').getByRole('button', { name: 'Go live' }).click();
  await eventually(() => agents.innerText()).toMatch(/Writer[^]*Researcher[^]*Critic/);
  expect(new URL(page.url()).searchParams.get('at')).toBeNull();
});

pageTest('a step back and a step forward are one event each', async () => {
  const page = await browsing.open(`${stage().url}c/failed?at=12`);
  const slider = page.getByRole('slider', { name: 'Last event shown' });
  await eventually(() => slider.inputValue()).toBe('12');
  await page.getByRole('button', { name: 'Previous event' }).click();
  await eventually(() => slider.inputValue()).toBe('11');
  await page.getByRole('button', { name: 'Next event' }).click();
  await page.getByRole('button', { name: 'Next event' }).click();
  await eventually(() => slider.inputValue()).toBe('13');
});

pageTest('in the past all commands are disabled, and the page says why', async () => {
  const page = await browsing.open(`${stage().url}c/failed?at=24&agent=writer`);
  const shown = detail(page);
  await shown.getByText(/Go live to pause, retry or fork/).waitFor();
  expect(await page.getByRole('button', { name: /^(Retry|Pause|Fork)/ }).count()).toBe(0);
  await eventually(() => page.getByRole('textbox', { name: 'Message' }).isDisabled()).toBe(true);
});

pageTest('events that arrive while the page shows the past are there after Go live', async () => {
  await playIdle(stage(), 'meanwhile');
  const page = await browsing.open(`${stage().url}c/meanwhile?at=6&list=turns`);
  await page.getByText('The past.').waitFor();
  await stage().play('meanwhile', ['critic'], 'Is there anything missing in the end?');
  expect(await page.getByText('Is there anything missing in the end?').count()).toBe(0);
  await page.getByRole('contentinfo').getByRole('button', { name: 'Go live' }).click();
  const turns = happened(page);
  await eventually(() => turns.getByRole('link', { name: /Critic.*done/ }).count()).toBe(2);
});
