import { expect } from 'vitest';
import { eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { openStage, type Play } from './stage.ts';
import { violations } from './violations.ts';

const give = (to: string, task: string) => ({ reply: '', calls: [{ name: 'delegate', args: { to, task } }] });

/** Ana asks the lead, who has the surveyor look; the surveyor has the digger dig. */
const COMPANY: Play = {
  company: () => ({
    agents: (
      [
        [
          'lead',
          [
            { when: { contains: 'It is dry' }, reply: 'Then we build.' },
            { when: { contains: 'Thank you' }, reply: 'Gladly.' },
            give('surveyor', 'look up plot 7'),
          ],
        ],
        ['surveyor', [{ when: { contains: 'no water' }, reply: 'It is dry.' }, give('digger', 'dig a hole')]],
        ['digger', [{ reply: 'no water' }]],
      ] as const
    ).map(([id, rules]) => ({
      id,
      name: id[0]?.toUpperCase() + id.slice(1),
      provider: 'scripted',
      model: 'test',
      script: { rules },
      tools: ['delegate'],
    })) as never,
  }),
  lines: [],
};

const browsing = useBrowser();
const stage = shared(async () => {
  const made = await openStage(COMPANY);
  await made.play('plot', ['lead'], 'May we build?');
  return made;
});

pageTest(
  'the graph of agents shows who wrote to whom, then and now, live, by mouse and keyboard, wide and narrow',
  async () => {
    const page = await browsing.open(`${stage().url}c/plot`);
    await page.getByRole('group', { name: 'List' }).getByRole('link', { name: 'Graph' }).click();
    const graph = happened(page);
    const node = (name: string) =>
      graph.getByRole('button', { name: new RegExp(`${name}.*sent|${name}.*moment`, 'i') });
    await eventually(() => node('Ana').innerText()).toMatch(/1 sent, 0 received/);
    // A task of a thread has its line, too.
    await eventually(() => node('Digger').innerText()).toMatch(/0 sent, 1 received/);
    await graph.getByText('Graph as a table').click();
    const rows = () =>
      graph
        .getByRole('row')
        .allInnerTexts()
        .then((all) => all.slice(1).map((row) => row.replaceAll(/\s+/g, ' ')));
    await eventually(rows).toEqual([
      expect.stringMatching(/^Ana Lead 1 0 0 event 1/),
      expect.stringMatching(/^Lead Surveyor 0 1 0 event/),
      expect.stringMatching(/^Surveyor Lead 1 0 0 event/),
      'Surveyor digger 0 1 0 thread',
    ]);
    expect(await violations(page)).toEqual([]);

    // A message that comes lights its line, and only that one.
    expect(await graph.locator('.graph-pass').count()).toBe(0);
    await stage().say('plot', ['lead'], 'Thank you all.');
    await eventually(() => node('Ana').innerText()).toMatch(/2 sent/);
    await eventually(() => graph.locator('.graph-pass').count()).toBe(1);
    await stage().troupe.idle();

    // Pressing a node selects the agent; pressing a line shows its newest message.
    await node('Surveyor').focus();
    await page.keyboard.press('Enter');
    await eventually(() => new URL(page.url()).searchParams.get('agent')).toBe('surveyor');
    expect(await node('Surveyor').getAttribute('aria-pressed')).toBe('true');
    await graph.getByText('Graph as a table').click();
    const at = await graph.locator('.graph-label', { hasText: '2' }).boundingBox();
    if (!at) throw new Error('no label');
    await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
    await graph.getByText('Ana → Lead: 2 messages').waitFor();
    await page.mouse.click(at.x + at.width / 2, at.y + at.height / 2);
    await eventually(() => new URL(page.url()).searchParams.get('list')).toBeNull();
    await eventually(() => graph.locator('.item-shown').innerText()).toContain('Thank you all.');

    // The past has its counts, and everybody keeps their place.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${stage().url}c/plot?list=graph&at=1`);
    await eventually(() => node('Ana').innerText()).toMatch(/1 sent/);
    await eventually(() => node('Digger').innerText()).toMatch(/not here at this moment/);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
    expect(await violations(page)).toEqual([]);
  },
);

pageTest(
  'a replay plays at any speed and as it was, pauses by the keyboard, and graph and tree follow it',
  async () => {
    await stage().play('replayed', ['lead'], 'May we build?');
    stage().clock.pass(3_600_000);
    await stage().play('replayed', ['lead'], 'Thank you all.');
    const after = (await stage().events('replayed')).find(
      ({ seq, body }) => seq > 1 && JSON.stringify(body).includes('Thank you'),
    );
    const before = (after?.seq ?? 0) - 1;
    const page = await browsing.open(`${stage().url}c/replayed?list=tree&at=1`);
    const tree = happened(page);
    const shown = () => new URL(page.url()).searchParams.get('at');
    const bar = page.getByRole('contentinfo', { name: 'Shown moment' });
    const speed = bar.getByRole('combobox', { name: 'Speed of the replay' });
    await eventually(() => tree.innerText()).toMatch(/No agent has taken a turn/);
    await speed.selectOption('as it was');
    // From here on the page's clock moves by hand.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await bar.getByRole('button', { name: 'Continue' }).click();
    // An hour in which nothing happened takes two seconds.
    await eventually(async () => {
      await page.clock.runFor(100);
      return bar.getByText('1 h 0 m of silence, shown as 2 s').count();
    }).toBe(1);
    await page.getByRole('heading', { name: 'Timeline' }).click();
    await page.keyboard.press(' ');
    await bar.getByRole('button', { name: 'Continue' }).waitFor();
    expect(await bar.getByText('of silence').count()).toBe(0);
    expect(shown()).toBe(String(before));
    await eventually(() => tree.innerText()).toMatch(/Surveyor gives Digger a task/);
    expect(await tree.innerText()).not.toContain('Gladly.');
    await page.clock.resume();
    expect(await violations(page)).toEqual([]);
    // At another speed, to the end.
    await page.keyboard.press('<');
    await eventually(() => speed.inputValue()).toBe('16');
    await page.keyboard.press(' ');
    await eventually(shown).toBeNull();
    await eventually(() => tree.innerText()).toContain('Gladly.');
    // From the beginning, with the messages that pass.
    await tree.getByRole('link', { name: 'Graph' }).click();
    await tree.getByRole('button', { name: /Ana.*2 sent/ }).waitFor();
    await page.keyboard.press('r');
    await eventually(() => tree.locator('.graph-pass').count()).toBeGreaterThan(2);
    await bar.getByRole('button', { name: 'Replay' }).waitFor();
  },
);

pageTest(
  'the timeline nests a task that was given in a thread, and links to where it was given',
  async () => {
    const page = await browsing.open(`${stage().url}c/plot`);
    const timeline = page.getByRole('region', { name: 'Timeline' });
    await timeline.getByText('Timeline as text').click();
    const nested = timeline.getByRole('link', { name: /^surveyor delegated to digger, ended/i });
    await eventually(() => timeline.getByRole('listitem').allInnerTexts()).toEqual(
      expect.arrayContaining([expect.stringMatching(/^lead delegated to surveyor, done/i)]),
    );
    await nested.click();
    await eventually(() => happened(page).innerText()).toMatch(/dig a hole/);
    await eventually(() => new URL(page.url()).pathname).not.toMatch(/\/plot$/);
  },
);
