import { expect } from 'vitest';
import { PICTURES } from '../support/pictures.ts';
import { eventually, happened, pageTest, press, shared, useBrowser } from './browser.ts';
import { abortAll, isSpeaking, playApproval, playFailed, playIdle } from './fixtures.ts';
import { OFFICE, STREAMED } from './office.ts';
import { ANA, openStage, type Play } from './stage.ts';

/** The conversation as people read it. */
const ask = { name: 'ask', args: { question: 'Which plot exactly?' } };
const delegate = { name: 'delegate', args: { to: 'surveyor', task: 'look up plot 7' } };

/** An agent gives another one a task, who asks a question on the way. */
const DELEGATING: Play = {
  company: () => ({
    agents: [
      {
        id: 'lead',
        provider: 'scripted',
        model: 'test',
        tools: ['delegate'],
        script: { rules: [{ when: { contains: 'It is dry' }, reply: 'Thank you.' }, { calls: [delegate] }] },
      },
      {
        id: 'surveyor',
        provider: 'scripted',
        model: 'test',
        tools: ['ask'],
        script: { rules: [{ when: { contains: 'at the quay' }, reply: 'It is dry.' }, { calls: [ask] }] },
      },
    ],
  }),
  lines: [],
};

const browsing = useBrowser();
const stage = shared(() => openStage(OFFICE));

pageTest(
  'a conversation is read as messages with names, work in cards that open, and hand-overs',
  async () => {
    await playIdle(stage(), 'reading');
    const page = await browsing.open(`${stage().url}c/reading`);
    const said = happened(page).getByRole('log', { name: 'What was said' });
    await eventually(() => said.innerText()).toMatch(
      /Ana[^]*launch the new tariff[^]*Orchestrator[^]*Gladly[^]*Ben[^]*Is there anything missing[^]*hands over to Researcher[^]*Find what the old tariff cost/,
    );
    const call = said.getByRole('button', { name: /^search/ });
    expect(await call.getAttribute('aria-expanded')).toBe('false');
    await call.click();
    await said.getByText('3 results for "old tariff"').waitFor();
    await said.getByText('What the receiver is told').click();
    await said.getByText('You know the library.').first().waitFor();
  },
);

pageTest('whoever leaves is told by name', async () => {
  await playIdle(stage(), 'leaving');
  const about = { conversation: 'leaving' as never, agent: 'critic' as never };
  await stage().troupe.command({ command: 'leave', ...about, reason: 'It is late' }, ANA);
  const page = await browsing.open(`${stage().url}c/leaving`);
  await happened(page).getByText('Ana: Critic leaves: It is late').waitFor();
});

pageTest('words that stream are shown as they come, and are there again after a reload', async () => {
  await stage().say('streaming', ['researcher'], 'What do the tide tables say for the week?');
  await isSpeaking(stage(), 'streaming', 'researcher');
  const page = await browsing.open(`${stage().url}c/streaming`);
  const running = happened(page).getByRole('article', { name: 'Researcher is at work' });
  const beginning = STREAMED.slice(0, 60);
  await eventually(() => running.innerText()).toContain(beginning);
  await page.reload();
  await eventually(() => running.innerText()).toContain(beginning);
  await abortAll(stage(), 'streaming');
});

pageTest('what is said while older events are still loaded is shown', async () => {
  await playIdle(stage(), 'late');
  const page = await browsing.open(`${stage().url}c/late?list=turns`);
  const isAsked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  await page.route(/events[?]after=/, async (route) => {
    isAsked.resolve();
    await goOn.promise;
    await route.continue();
  });
  const slider = page.getByRole('slider', { name: 'Last event shown' });
  const isTold = async () =>
    eventually(() => slider.inputValue()).toBe(String((await stage().troupe.state('late')).head));
  // What came since the page was opened is not among the events that came with it.
  await stage().say('late', [], 'One more, before.');
  await isTold();
  await happened(page).getByRole('link', { name: 'Talk' }).click();
  await isAsked.promise;
  await stage().say('late', [], 'One more, meanwhile.');
  await isTold();
  goOn.resolve();
  await happened(page).getByText('One more, meanwhile.').waitFor();
});

pageTest('Markdown is drawn; HTML in it is text, and links lead to the web only', async () => {
  const content = [
    '# Plan',
    '- **first** `now`',
    '| a | b |\n|---|---|\n| 1 | 2 |',
    '[web](https://example.org) [bad](javascript:window.__xss=1) <img src=x onerror="window.__xss=2"> ![picture](https://example.org/x.png)',
    '```\nconst a = 1;\n```',
  ].join('\n\n');
  await stage().play('markdown', ['critic'], content);
  const page = await browsing.open(`${stage().url}c/markdown`);
  const words = happened(page).getByRole('article', { name: 'Ana says' });
  await words.getByRole('cell', { name: '2' }).waitFor();
  expect(await words.getByRole('listitem').first().innerText()).toContain('first now');
  expect(await words.locator('strong').innerText()).toBe('first');
  const links = await words
    .locator('.words-body a')
    .evaluateAll((all) => all.map((each) => (each as unknown as { href: string }).href));
  expect(links).toEqual(['https://example.org/', 'https://example.org/x.png']);
  expect(await words.locator('img').count()).toBe(0);
  expect(await words.innerText()).toContain('<img src=x');
  expect(await page.evaluate('window.__xss')).toBeUndefined();
});

pageTest('an image of a message is shown, and a text opens', async () => {
  const { png } = PICTURES;
  await stage().troupe.send('pictures', {
    author: ANA,
    to: [],
    content: 'Look.',
    attachments: [
      { name: 'chart.png', ...png },
      { name: 'notes.txt', mediaType: 'text/plain', data: btoa('High water at four.') },
    ],
  });
  const page = await browsing.open(`${stage().url}c/pictures`);
  const image = happened(page).getByRole('img', { name: 'chart.png' });
  await eventually(() =>
    image.evaluate((each) => (each as unknown as { naturalWidth: number }).naturalWidth),
  ).toBeGreaterThan(0);
  await happened(page).getByText('notes.txt').click();
  await happened(page).getByText('High water at four.').waitFor();
});

pageTest(
  'a task is shown with its thread folded in, which goes on while it is open, and in the tree',
  async () => {
    await using company = await openStage(DELEGATING);
    const attachments = [{ name: 'plot.png', ...PICTURES.png }];
    await company.troupe.send('task', {
      author: ANA,
      to: ['lead'],
      content: 'Have the plot looked up.',
      attachments,
    });
    await company.until('task', ({ kind }) => kind === 'delegation.opened');
    const page = await browsing.open(`${company.url}c/task`);
    const task = happened(page).getByRole('article', { name: 'lead gives surveyor a task' });
    await eventually(() => task.innerText()).toMatch(/under way[^]*look up plot 7/);
    await task.getByRole('img', { name: 'plot.png' }).waitFor();
    const { tasks } = await company.troupe.tasks('task', { open: true });
    const { thread = '' } = tasks.find(({ kind }) => kind === 'delegation') ?? {};
    // The tree has the turns of the thread as they come, though the conversation shown has no event.
    const lists = page.getByRole('group', { name: 'List' });
    await lists.getByRole('link', { name: 'Tree' }).click();
    const tree = happened(page).getByRole('list', { name: 'Tasks' });
    await company.until(thread, ({ kind }) => kind === 'question');
    await eventually(() => tree.innerText()).toMatch(/a task\s*under way[^]*surveyor answers lead/);
    await company.say(thread, ['lead'], 'It is dry over here.');
    await eventually(() => tree.innerText()).toContain('Thank you.');
    await lists.getByRole('link', { name: 'Talk' }).click();
    await task.getByRole('button', { name: 'See how' }).click();
    await task.getByText('Which plot exactly?', { exact: true }).waitFor();
    const [question] = (await company.troupe.tasks(thread, { open: true })).tasks;
    const answer = {
      command: 'answer',
      conversation: thread,
      question: question?.id ?? '',
      content: 'The one at the quay.',
    } as const;
    await company.troupe.command(answer, ANA);
    await task.getByText('It is dry.').first().waitFor();
    await eventually(() => task.innerText()).toMatch(/done after/);
    // From the turn, its call and the task to the thread, and back to the turn.
    const { href } = await task
      .getByRole('link', { name: 'its thread' })
      .evaluate((each) => ({ href: (each as unknown as { href: string }).href }));
    const call = happened(page).getByRole('button', { name: /^delegate/ });
    await call.click();
    await happened(page).getByRole('link', { name: 'The thread of surveyor' }).waitFor();
    await page.goto(`${company.url}c/task?list=turns`);
    await happened(page)
      .getByRole('link', { name: /^thread of surveyor/ })
      .click();
    await eventually(() => page.url()).toBe(href);
    await page.getByText('A task of lead for surveyor in').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'task', exact: true }).click();
    await page
      .getByRole('tabpanel', { name: 'Tools' })
      .getByRole('link', { name: 'The thread of surveyor' })
      .click();
    await eventually(() => page.url()).toBe(href);
    await page.goto(`${company.url}c/task`);
    await lists.getByRole('link', { name: 'Tree' }).click();
    await eventually(() => tree.innerText()).toMatch(
      /lead answers Ana[^]*lead gives surveyor a task\s*done after[^]*look up plot 7[^]*surveyor answers lead/,
    );
    await tree.getByRole('link', { name: 'lead gives surveyor a task' }).click();
    await eventually(() => page.url()).toBe(href);
    // Its requests end before the server does.
    await page.close();
  },
);

pageTest('a failed turn stands in its place with the reason and Retry', async () => {
  await playFailed(stage(), 'failed-turn');
  const page = await browsing.open(`${stage().url}c/failed-turn`);
  const failed = happened(page).getByRole('region', { name: 'The turn of writer failed' });
  await eventually(() => failed.innerText()).toMatch(/provider_quota[^]*exceeded your current quota/);
  await failed.getByRole('button', { name: 'Retry' }).click();
  await stage().until(
    'failed-turn',
    ({ kind, body }) => kind === 'command' && 'command' in body && body.command === 'retry',
  );
});

pageTest('a link to an event brings it into view, and the page goes back to the end', async () => {
  for (let n = 1; n <= 150; n++) await stage().say('long', [], `Note number ${n} of the harbour.`);
  const page = await browsing.open(`${stage().url}c/long?event=20`);
  const sought = happened(page).locator('.item-shown');
  await eventually(() => sought.innerText()).toContain('Note number 20 of');
  await eventually(() => sought.boundingBox().then((place) => place?.y)).toBeLessThan(800);
  await happened(page).getByRole('button', { name: 'Newest' }).click();
  const last = happened(page).getByText('Note number 150 of');
  await eventually(() => last.isVisible()).toBe(true);
  // And further back, as far as the reader scrolls.
  const log = happened(page).getByRole('log');
  await eventually(async () => {
    await log.evaluate((each) => ((each as unknown as { scrollTop: number }).scrollTop = 0));
    return happened(page).getByText('Note number 1 of').count();
  }).toBe(1);
});

pageTest('a click on what has just moved does nothing, and says so', async () => {
  await playApproval(stage(), 'moved');
  const page = await browsing.open(`${stage().url}c/moved`);
  const waiting = happened(page).getByRole('region', { name: 'Waiting for you' });
  const approve = waiting.getByRole('button', { name: 'Approve' });
  await approve.scrollIntoViewIfNeeded();
  await eventually(() => approve.getAttribute('aria-disabled')).toBeNull();
  // Something above goes away, and the button is under the pointer at the same moment.
  await page.evaluate(
    `{ const button = document.querySelector('.button-run');
       document.querySelector('.reading-column').style.paddingTop = '90px';
       button.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 })); }`,
  );
  await waiting.getByText('This has just moved.').waitFor();
  expect((await stage().events('moved')).some(({ kind }) => kind === 'approval.decided')).toBe(false);
  await press(approve);
  await stage().until('moved', ({ kind }) => kind === 'approval.decided');
  await happened(page).getByText('approved by Operator').waitFor();
});
