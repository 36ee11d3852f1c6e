import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { abortAll, pauseAgent, playBusy, playCompacted, playFailed, playIdle } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStageWithFailedAgent, FAILED_AGENT } from './failed-agent.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStageWithFailedAgent(OFFICE);
  await playFailed(made, 'failed');
  await playIdle(made, 'idle');
  await playCompacted(made, 'compacted');
  return made;
});

pageTest('agents are listed by urgency, each with its condition', async () => {
  await playBusy(stage(), 'by-need');
  await pauseAgent(stage(), 'by-need', 'orchestrator');
  const page = await browsing.open(`${stage().url}c/by-need`);
  const agents = page.getByRole('region', { name: 'Agents' }).getByRole('listitem');
  await eventually(() => agents.allInnerTexts()).toEqual([
    expect.stringMatching(/needs you[^]*Writer/) as string,
    expect.stringMatching(/running[^]*Researcher/) as string,
    expect.stringMatching(/paused[^]*Orchestrator/) as string,
  ]);
  await abortAll(stage(), 'by-need');
});

pageTest('the header counts the agents by condition, failures first', async () => {
  const page = await browsing.open(`${stage().url}c/failed`);
  const health = page.getByRole('navigation', { name: 'Health' });
  await health.getByRole('link', { name: '1 failed' }).waitFor();
  expect(await health.innerText()).toMatch(/3 agents\s*1 failed\s*2 idle/);
  await health.getByRole('link', { name: '1 failed' }).click();
  const turns = happened(page).locator('[data-turn]');
  await eventually(() => turns.count()).toBe(1);
  expect(await turns.first().innerText()).toContain('Writer');
});

pageTest('a failed agent is shown with the reason, and its colleague continues', async () => {
  const page = await browsing.open(`${stage().url}c/${FAILED_AGENT}?agent=critic`);
  const agents = page.getByRole('region', { name: 'Agents' }).getByRole('listitem');
  await eventually(async () => (await agents.allInnerTexts())[0]).toMatch(/failed[^]*Critic/);
  const shown = detail(page);
  await shown.getByRole('heading', { name: /Critic/ }).waitFor();
  await eventually(() => shown.innerText()).toMatch(/actor_corrupt: its data is not JSON/);
});

pageTest('selecting a turn shows its agent and its tabs', async () => {
  const page = await browsing.open(`${stage().url}c/idle?list=turns`);
  await page.getByRole('link', { name: /Orchestrator.*handed over to Researcher/ }).click();
  const shown = detail(page);
  await shown.getByRole('heading', { name: /Orchestrator\s*\/?\s*turn 2/ }).waitFor();
  expect(await shown.getByRole('tab').allInnerTexts()).toEqual([
    'State',
    'Prompt',
    'Diff',
    'Tools',
    'Events',
    'Raw',
  ]);
  await shown.getByRole('tab', { name: 'Tools' }).click();
  await shown.getByRole('tabpanel', { name: 'Tools' }).getByText('handoff').first().waitFor();
});

pageTest(
  'the timeline is read, moved in and selected from by keyboard, and follows the address',
  async () => {
    const page = await browsing.open(`${stage().url}c/idle`);
    const timeline = page.getByRole('region', { name: 'Timeline' });
    const axis = timeline.getByRole('application', { name: 'Turns by time' });
    await axis.focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Home');
    const said = timeline.getByRole('status');
    await eventually(() => said.innerText()).toMatch(/^turn \d of \w+, done, [\d.]+ m?s, from \w+/);
    const [, number, name] = /^turn (\d) of (\w+),/.exec(await said.innerText()) ?? [];
    await page.keyboard.press('Enter');
    await eventually(() => decodeURIComponent(page.url())).toContain(
      `/t/idle:${name?.toLowerCase()}:${number}`,
    );
    const whole = await timeline.getByTitle('What is in view').innerText();
    await page.keyboard.press('s');
    await eventually(() => timeline.getByTitle('What is in view').innerText()).not.toBe(whole);
    await page.keyboard.press('0');
    await timeline.getByText('Timeline as text').click();
    const text = () => timeline.getByRole('listitem').allInnerTexts();
    await eventually(async () => (await text()).join('\n')).toMatch(
      /turn 2 of Orchestrator, done[^]*had missed/,
    );
  },
);
