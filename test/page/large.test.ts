import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { CROWD, CROWD_SIZE, playCrowd } from './crowd.ts';
import { exportConversation } from '../../src/library/import/troupe-format.ts';
import { ends, logOf, says, starts } from '../projection/logs.ts';
import { importLongLog, NEEDLE } from './long-log.ts';
import { OFFICE } from './office.ts';
import { openStage } from './stage.ts';

const EVENTS = 10_000;
/** More than the page is sent. */
const MANY_TURNS = 620;
const browsing = useBrowser();
const long = shared(async () => {
  const stage = await openStage(OFFICE);
  await importLongLog(stage, 'long', EVENTS);
  const turns = Array.from({ length: MANY_TURNS }, (_, n) => [
    says(`Ledger ${n + 1}`, ['researcher']),
    { ...starts('researcher', n + 1, 3 * n + 1, [3 * n + 1]), id: `c:researcher:${n + 1}:started` },
    ends('researcher', n + 1, 'done', [3 * n + 1]),
  ]);
  const log = logOf(...turns.flat());
  await stage.troupe.import(exportConversation(Readable.from([log]), 'c', 'kept'), { conversation: 'c' });
  return stage;
});
const crowd = shared(async () => {
  const stage = await openStage(CROWD);
  await playCrowd(stage, 'crowd');
  return stage;
});

pageTest(
  'only the visible ones of ten thousand events are in the document, from the last to the first',
  async () => {
    const page = await browsing.open(`${long().url}c/long?list=events&kind=*`);
    const list = happened(page).getByRole('group', { name: 'Events' });
    const lines = list.getByRole('link');
    await eventually(async () => (await lines.last().innerText()).replace(/\s[^]*/, '')).toBe(String(EVENTS));
    expect(await lines.count()).toBeLessThan(100);
    await list.hover();
    await eventually(async () => {
      await page.mouse.wheel(0, -EVENTS * 28);
      return lines.first().innerText();
    }).toMatch(/^1\s[^]*Question 1:/);
    expect(await lines.count()).toBeLessThan(100);
    await page.mouse.wheel(0, EVENTS * 14);
    await eventually(async () =>
      Number((await lines.first().innerText()).replace(/\s[^]*/, '')),
    ).toBeGreaterThan(4_900);
  },
);

pageTest('a long conversation opens at its end, whatever is drawn after it', async () => {
  const page = await browsing.open(`${long().url}c/c`, { viewport: { width: 2_560, height: 1_440 } });
  await page.getByRole('application', { name: 'Turns by time' }).waitFor();
  await page.getByRole('region', { name: 'Detail', exact: true }).waitFor();
  await page.evaluate(
    `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`,
  );
  const left = `(({ scrollHeight, clientHeight, scrollTop }) => scrollHeight - clientHeight - scrollTop)(document.getElementById('rows'))`;
  await eventually(() => page.evaluate<number>(left)).toBeLessThan(40);
  await eventually(() => page.getByRole('button', { name: 'Newest' }).count()).toBe(0);
});

pageTest('an event that arrives draws its own line, and no other again', async () => {
  const page = await browsing.open(`${long().url}c/long?list=events&kind=*`);
  const lines = happened(page).getByRole('group', { name: 'Events' }).getByRole('link');
  await eventually(async () => (await lines.last().innerText()).replace(/\s[^]*/, '')).toBe(String(EVENTS));
  await page.evaluate(`
    globalThis.drawn = new Set();
    new MutationObserver((changes) => {
      for (const { target } of changes) {
        const line = (target instanceof Element ? target : target.parentElement)?.closest('.event');
        if (line) drawn.add(line);
      }
    }).observe(document.querySelector('.list-window'), { subtree: true, characterData: true, childList: true });
  `);
  await long().troupe.send('long', {
    author: { kind: 'user', id: 'ana', name: 'Ana' },
    to: [],
    replyTo: 'none',
    content: 'One more line',
  });
  await happened(page)
    .getByRole('link', { name: /One more line/ })
    .waitFor();
  expect(await page.evaluate<number>('drawn.size')).toBeLessThan(2);
});

pageTest('one line among ten thousand is found by its words', async () => {
  const page = await browsing.open(`${long().url}c/long?list=events`);
  await happened(page).getByRole('searchbox', { name: 'Filter by text' }).fill(NEEDLE);
  await happened(page)
    .getByRole('link', { name: new RegExp(NEEDLE) })
    .waitFor();
  expect(await happened(page).getByRole('group', { name: 'Events' }).getByRole('link').count()).toBe(1);
});

pageTest('the failed one of fifty agents comes first', async () => {
  const page = await browsing.open(`${crowd().url}c/crowd`);
  const agents = page.getByRole('region', { name: 'Agents' });
  await agents.getByRole('heading', { name: `Agents ${CROWD_SIZE}` }).waitFor();
  const lines = await agents.getByRole('listitem').allInnerTexts();
  expect(lines).toHaveLength(CROWD_SIZE);
  expect(lines[0]).toMatch(/failed[^]*Agent 37/);
  expect(lines.filter((line) => line.includes('failed'))).toHaveLength(1);
  await agents.getByRole('listitem').first().getByRole('link').first().click();
  await detail(page).getByText('provider_auth').first().waitFor();
});

pageTest('turns that the page was not sent are listed and opened like all others', async () => {
  const page = await browsing.open(`${long().url}c/c?list=turns`);
  const table = happened(page).getByRole('table', { name: 'Turns' });
  await table.locator('[data-turn]').first().waitFor();
  const older = happened(page).getByRole('button', { name: 'Show older turns (420)' });
  while (!(await older.isVisible()))
    await happened(page)
      .getByRole('button', { name: /^Show \d+ more$/ })
      .click();
  await older.click();
  await table.locator('[data-turn="c:researcher:420"]').waitFor();
  await page.goto(`${long().url}c/c/t/c:researcher:7`);
  await detail(page)
    .getByRole('heading', { name: /turn 7/ })
    .waitFor();
  await detail(page).getByRole('button', { name: 'Fork' }).waitFor();
  await detail(page).getByRole('button', { name: 'Run again…' }).waitFor();
});
