import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playQuestion } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(OFFICE);
  await playQuestion(made, 'layout');
  return made;
});

/** The least width at which a column is legible, px. */
const LEGIBLE_PX = 150;

interface Region {
  isWhole: boolean;
  width: number;
}

/** Whether the columns are within the window, and how wide they are. */
async function regions(page: Page): Promise<Record<string, Region>> {
  const found = { who: '.left', what: '.middle', why: '.right' };
  const entries = Object.entries(found).map(async ([name, selector]) => {
    const place = await page.locator(selector).boundingBox();
    const width = place?.width ?? 0;
    const end = (place?.x ?? 0) + width;
    const isWhole = (place?.x ?? -1) >= 0 && end <= (page.viewportSize()?.width ?? 0) + 1;
    return [name, { isWhole, width }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

function legible(all: Record<string, Region>): string[] {
  return Object.entries(all)
    .filter(([, { isWhole, width }]) => isWhole && width >= LEGIBLE_PX)
    .map(([name]) => name);
}

pageTest('from phone to wall every column is whole or behind its button, and nothing is cut', async () => {
  const page = await browsing.open(stage().url, { viewport: { width: 1_000, height: 800 } });
  // The widest columns that somebody has dragged on a large screen.
  await page.evaluate(
    "localStorage.setItem('troupe-right', '900'); localStorage.setItem('troupe-left', '400')",
  );
  const expected: [number, string[]][] = [
    [390, ['what']],
    [768, ['who', 'what']],
    [901, ['who', 'what', 'why']],
    [1_000, ['who', 'what', 'why']],
    [1_440, ['who', 'what', 'why']],
    [2_560, ['who', 'what', 'why']],
  ];
  await page.goto(`${stage().url}c/layout`);
  await happened(page).getByRole('region', { name: 'Waiting for you' }).waitFor();
  for (const [width, columns] of expected) {
    await page.setViewportSize({ width, height: 800 });
    await eventually(() => regions(page).then(legible)).toEqual(columns);
    expect(await page.evaluate('document.documentElement.scrollWidth'), `${width} px`).toBeLessThanOrEqual(
      width,
    );
    expect((await regions(page))['what']?.width, `${width} px`).toBeGreaterThan(320);
  }
  // Narrow screens show the others at a press.
  await page.setViewportSize({ width: 390, height: 800 });
  for (const [label, column] of [
    ['Who', 'who'],
    ['Why', 'why'],
  ] as const) {
    await page.getByRole('button', { name: label, exact: true }).click();
    await eventually(() => regions(page).then(legible)).toEqual([column]);
  }
  await page.setViewportSize({ width: 768, height: 800 });
  await eventually(() => regions(page).then(legible)).toEqual(['who', 'why']);
  for (const width of [390, 768, 2_560]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(stage().url);
    const row = page.getByRole('link', { name: /Find a headline/ });
    await row.waitFor();
    const place = await row.boundingBox();
    expect((place?.x ?? -1) >= 0 && (place?.x ?? 0) + (place?.width ?? 0) <= width, `home, ${width} px`).toBe(
      true,
    );
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
});

pageTest('the names of offered tools stay on one line, however many arguments they have', async () => {
  const page = await browsing.open(`${stage().url}c/layout?agent=writer&tab=tools`);
  const offered = detail(page).getByRole('region', { name: 'Tools offered' });
  const name = offered.locator('summary code').first();
  await name.waitFor();
  expect(await name.innerText()).toBe('ask');
  const place = await name.boundingBox();
  expect(place?.height).toBeLessThan(24);
  expect(place?.width).toBeGreaterThan(16);
});

pageTest('the first stop of the Tab key leads to the content', async () => {
  const page = await browsing.open(`${stage().url}c/layout`);
  await happened(page).getByRole('log').waitFor();
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to the content' });
  await eventually(() => skip.evaluate((each) => each.ownerDocument.activeElement === each)).toBe(true);
  expect((await skip.boundingBox())?.x).toBeGreaterThan(0);
  const before = page.url();
  await page.keyboard.press('Enter');
  const log = happened(page).getByRole('log');
  await eventually(() => log.evaluate((each) => each.ownerDocument.activeElement === each)).toBe(true);
  expect(page.url()).toBe(before);
});

pageTest('the timeline is as high as its lanes, and no higher than it was dragged to', async () => {
  const page = await browsing.open(`${stage().url}c/layout?list=turns`, {
    viewport: { width: 1_280, height: 900 },
  });
  const timeline = page.getByRole('region', { name: 'Timeline' });
  const lanes = timeline.getByRole('application', { name: 'Turns by time' });
  await lanes.getByRole('button').first().waitFor();
  await eventually(() =>
    lanes.evaluate((all) => all.clientHeight < 180 && all.scrollHeight === all.clientHeight),
  ).toBe(true);
  const before = (await timeline.boundingBox())?.height ?? 0;
  await timeline.getByText('Timeline as text').click();
  await eventually(async () => ((await timeline.boundingBox())?.height ?? 0) > before).toBe(true);
  await timeline.getByText('Timeline as text').click();
  const separator = page.getByRole('separator', { name: 'Height of the timeline' });
  const place = await separator.boundingBox();
  if (!place) throw new Error('no separator');
  await page.mouse.move(place.x + 100, place.y + place.height / 2);
  await page.mouse.down();
  await page.mouse.move(place.x + 100, place.y + place.height / 2 - 30);
  await page.mouse.up();
  await eventually(async () => Math.round((await timeline.boundingBox())?.height ?? 0)).toBe(
    Math.round(before) - 30,
  );
});

pageTest(
  'the composer names the agent that has the conversation, once another has handed it over',
  async () => {
    await using office = await openStage({
      ...OFFICE,
      company: (...given) => ({
        ...OFFICE.company(...given),
        defaults: { respondWhenUnaddressed: 'orchestrator' },
      }),
    });
    await office.play('plan', [], 'Good morning. I want to launch the new tariff on Monday.');
    const page = await browsing.open(`${office.url}c/plan`);
    const to = page.getByRole('combobox', { name: 'To', exact: true });
    const first = () => to.locator('option').first().innerText();
    await eventually(first).toBe('To @Orchestrator (default)');
    await office.play('plan', [], 'Then over to the researcher, please.');
    await eventually(first).toBe('To @Researcher');
    const said = await office.say('plan', [], 'Thank you. That is all for now.');
    expect(said.to).toEqual(['researcher']);
    await office.troupe.idle();
    await page.close();
  },
);

pageTest('on a tablet a long question does not run under the names beside it', async () => {
  const page = await browsing.open(stage().url, { viewport: { width: 768, height: 1_024 } });
  const about = page.locator('.inbox-asks .inbox-about').first();
  await about.waitFor();
  const [left, right] = [
    await about.boundingBox(),
    await page.locator('.inbox-asks .inbox-who').first().boundingBox(),
  ];
  expect((left?.x ?? 0) + (left?.width ?? 0)).toBeLessThanOrEqual(right?.x ?? 0);
});

pageTest('the composer names the default agent, whole on a phone too', async () => {
  await using office = await openStage({
    ...OFFICE,
    company: (...given) => ({
      ...OFFICE.company(...given),
      defaults: { respondWhenUnaddressed: 'orchestrator' },
    }),
  });
  await playQuestion(office, 'asked');
  const page = await browsing.open(`${office.url}c/asked`, { viewport: { width: 390, height: 844 } });
  await page.getByRole('textbox', { name: 'Message' }).focus();
  const to = page.getByRole('combobox', { name: 'To', exact: true });
  await eventually(() => to.locator('option').first().innerText()).toBe('To @Orchestrator (default)');
  // A browser cuts the chosen words of a select that is narrower than it wants to be.
  for (const name of ['To', 'While it is busy']) {
    const choice = page.getByRole('combobox', { name, exact: true });
    const given = (await choice.boundingBox())?.width ?? 0;
    await choice.evaluate((select) => void Object.assign(Object(select).style, { flex: 'none' }));
    const wanted = (await choice.boundingBox())?.width ?? 0;
    expect(wanted - given).toBeLessThan(1);
  }
});
