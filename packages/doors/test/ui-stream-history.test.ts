import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../../src/tools/tool.ts';
import { openStage, PAY, PAYS } from './stage.ts';
import { atRest, historyOf, lines, openChat, plain } from './ui-chat.ts';

const UMA = { kind: 'user', id: 'uma', name: 'Uma' } as const;
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test('files are attachments of the message, and come back with the history', async () => {
  await using stage = await openStage(['bo']);
  const chat = openChat(stage.url);
  await chat.sendMessage({
    text: 'Look.',
    files: [
      { type: 'file', mediaType: 'image/png', filename: 'dot.png', url: `data:image/png;base64,${PNG}` },
      {
        type: 'file',
        mediaType: 'text/plain',
        filename: 'a.txt',
        url: `data:text/plain;base64,${btoa('abc')}`,
      },
    ],
  });
  expect(chat.error).toBeUndefined();
  const [event] = (await stage.troupe.events('c1')).events;
  expect(event?.body).toMatchObject({
    content: 'Look.',
    attachments: [
      { type: 'image', name: 'dot.png' },
      { type: 'text', text: 'abc' },
    ],
  });
  const [said] = (await historyOf(stage.url)).messages;
  const sent = chat.messages[0]?.parts ?? [];
  const files = sent.filter(({ type }) => type === 'file');
  expect(files).toHaveLength(2);
  expect(said?.parts.filter(({ type }) => type === 'file')).toEqual(files);
});

test('files that are too large for one page are named', async () => {
  await using stage = await openStage(['bo']);
  const data = Buffer.alloc(3 * 1024 * 1024, 7);
  for (const name of ['a.bin', 'b.bin'])
    await stage.troupe.send('c1', {
      author: UMA,
      to: ['bo'],
      content: name,
      attachments: [{ mediaType: 'application/octet-stream', name, data }],
    });
  await stage.troupe.idle();
  const { messages } = await historyOf(stage.url);
  const parts = messages.flatMap((message) => message.parts);
  expect(parts.filter(({ type }) => type === 'file')).toMatchObject([{ filename: 'a.bin' }]);
  expect(parts.filter(({ type }) => type === 'data-file')).toMatchObject([
    { data: { name: 'b.bin', bytes: data.length } },
  ]);
});

test('files without their bytes, as after an import, are named', async () => {
  await using from = await openStage(['bo']);
  const attachments = [{ mediaType: 'image/png', name: 'dot.png', data: PNG }];
  await from.troupe.send('c1', { author: UMA, to: ['bo'], content: 'Look.', attachments });
  await from.troupe.idle();
  await using stage = await openStage(['bo']);
  await stage.troupe.import(from.troupe.export('c1'), { agent: 'bo', conversation: 'c1', format: 'troupe' });
  const [said] = (await historyOf(stage.url)).messages;
  expect(said?.parts).toMatchObject([
    { type: 'text', text: 'Look.' },
    { type: 'data-file', data: { name: 'dot.png', mediaType: 'image/png' } },
  ]);
});

test('an approval that is given after other messages goes on in its own message', async () => {
  await using stage = await openStage(['bo', 'cy'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS, 'It is paid.'], cy: ['Cy is here.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.', metadata: { to: ['bo'] } });
  await chat.sendMessage({ text: 'Cy?', metadata: { to: ['cy'] } });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  const { id } = (part as { approval: { id: string } }).approval;
  await chat.addToolApprovalResponse({ id, approved: true });
  await chat.sendMessage(undefined);
  await atRest(chat);
  const said = [
    'user: Pay.',
    'bo calls pay: output-available',
    'bo: It is paid.',
    'user: Cy?',
    'cy: Cy is here.',
  ];
  expect(lines(chat.messages)).toEqual(said);
  const { messages } = await historyOf(stage.url);
  expect(lines(messages)).toEqual(said);
  expect(plain(messages)).toEqual(plain(chat.messages));
});

test('of two exchanges at once each stream tells its own', async () => {
  const gates = new Map<string, () => void>();
  await using stage = await openStage(['bo', 'cy'], {
    answers: Object.fromEntries(
      ['bo', 'cy'].map((agent) => [
        agent,
        async () => {
          await new Promise<void>((go) => gates.set(agent, go));
          return { text: `I am ${agent}.` };
        },
      ]),
    ),
  });
  const [one, two] = [openChat(stage.url), openChat(stage.url)];
  const first = one.sendMessage({ text: 'Bo?', metadata: { to: ['bo'] } });
  await expect.poll(() => gates.has('bo')).toBe(true);
  const second = two.sendMessage({ text: 'Cy?', metadata: { to: ['cy'] } });
  await expect.poll(() => gates.has('cy')).toBe(true);
  // Bo speaks while the other chat listens.
  gates.get('bo')?.();
  await first;
  gates.get('cy')?.();
  await second;
  expect(lines(one.messages)).toEqual(['user: Bo?', 'bo: I am bo.']);
  expect(lines(two.messages)).toEqual(['user: Cy?', 'cy: I am cy.']);
  const { messages } = await historyOf(stage.url);
  expect(lines(messages).toSorted()).toEqual([...lines(one.messages), ...lines(two.messages)].toSorted());
  expect(messages.map(({ id }) => id)).toEqual(
    expect.arrayContaining([one.messages[1]?.id, two.messages[1]?.id]),
  );
});

test('two messages that one turn answers are both answered', async () => {
  const gates: (() => void)[] = [];
  await using stage = await openStage(['bo'], {
    answers: {
      bo: async () => {
        await new Promise<void>((go) => gates.push(go));
        return { text: `Answer ${gates.length}.` };
      },
    },
  });
  const chats = [openChat(stage.url), openChat(stage.url), openChat(stage.url)];
  const sending: Promise<void>[] = [];
  for (const [index, chat] of chats.entries()) {
    sending.push(chat.sendMessage({ text: `Question ${index}` }));
    await expect.poll(async () => (await questions()).length).toBe(index + 1);
    if (index === 0) await expect.poll(() => gates.length).toBe(1);
  }
  gates[0]?.();
  await expect.poll(() => gates.length).toBe(2);
  gates[1]?.();
  await Promise.all(sending);
  expect(chats.map(({ messages }) => lines(messages).at(-1))).toEqual([
    'bo: Answer 1.',
    'bo: Answer 2.',
    'bo: Answer 2.',
  ]);
  const { messages } = await historyOf(stage.url);
  expect(lines(messages).filter((line) => line.startsWith('bo'))).toEqual(['bo: Answer 1.', 'bo: Answer 2.']);

  async function questions() {
    const { events } = await stage.troupe.events('c1').catch(() => ({ events: [] }));
    return events.filter(({ author }) => author.kind === 'user');
  }
});

test('a message that an agent gets while it works is answered by the rest of its turn', async () => {
  let go = () => {};
  const wait = new Promise<void>((resolve) => (go = resolve));
  const look = defineTool({ name: 'look', description: '', schema: z.object({}), run: () => 'a cat' });
  await using stage = await openStage(['bo'], {
    tools: [look],
    agents: { bo: { tools: ['look'], whileBusy: 'steer' } },
    answers: {
      bo: async (request) => {
        if (JSON.stringify(request.body).includes('a cat')) return { text: 'A black cat.' };
        await wait;
        return { text: 'I look.', calls: [{ name: 'look', args: '{}' }] };
      },
    },
  });
  const [one, two] = [openChat(stage.url), openChat(stage.url)];
  const first = one.sendMessage({ text: 'What is it?' });
  await expect.poll(() => stage.requests('bo').length).toBe(1);
  const second = two.sendMessage({ text: 'And which colour?' });
  await expect
    .poll(
      async () => (await stage.troupe.events('c1')).events.filter(({ kind }) => kind === 'message').length,
    )
    .toBe(2);
  go();
  await Promise.all([first, second]);
  expect(lines(one.messages).at(-1)).toBe('bo: A black cat.');
  expect(lines(two.messages).at(-1)).toBe('bo: A black cat.');
});

test('an approval in the thread of a task is asked for and given in the chat', async () => {
  await using stage = await openStage(['lead', 'cashier'], {
    tools: [PAY],
    agents: { lead: { tools: ['delegate'] }, cashier: { tools: ['pay'] } },
    answers: {
      lead: [{ calls: [{ name: 'delegate', args: '{"to":"cashier","task":"Pay it."}' }] }, 'All is paid.'],
      cashier: [PAYS, 'Done.'],
    },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.', metadata: { to: ['lead'] } });
  expect(lines(chat.messages)).toContain('cashier calls pay: approval-requested');
  const part = chat.messages[1]?.parts.find((each) => 'approval' in each);
  const { id } = (part as { approval: { id: string } }).approval;
  expect(id).toContain('/');
  await chat.addToolApprovalResponse({ id, approved: true });
  await expect.poll(() => lines(chat.messages).at(-1)).toBe('lead: All is paid.');
  await atRest(chat);
  expect(lines(chat.messages)).toContain('cashier calls pay: output-available');
  expect(stage.requests('cashier')).toHaveLength(2);
});

test('a question in the thread of a task is answered in the chat', async () => {
  await using stage = await openStage(['lead', 'painter'], {
    agents: { lead: { tools: ['delegate'] }, painter: { tools: ['ask'] } },
    answers: {
      lead: [{ calls: [{ name: 'delegate', args: '{"to":"painter","task":"Paint."}' }] }, 'It is painted.'],
      painter: [{ calls: [{ name: 'ask', args: '{"question":"Which colour?"}' }] }, 'Done.'],
    },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Paint.', metadata: { to: ['lead'] } });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'data-question');
  expect(part).toMatchObject({ data: { agent: 'painter', text: 'Which colour?' } });
  const { question } = (part as { data: { question: string } }).data;
  await chat.sendMessage({ text: 'Nothing else?', metadata: { to: ['painter'] } });
  await chat.sendMessage({
    parts: [
      { type: 'text', text: 'blue' },
      { type: 'data-answer', data: { question } },
    ],
  });
  expect(chat.error).toBeUndefined();
  expect(lines(chat.messages.slice(0, 2)).at(-1)).toBe('lead: It is painted.');
});

test('a long conversation comes in pages, each message on one of them', async () => {
  await using stage = await openStage(['bo']);
  const messages = Array.from({ length: 500 }, (_, index) => [
    { role: 'user', content: `question ${index}` },
    { role: 'assistant', content: `answer ${index}` },
  ]).flat();
  await stage.troupe.import(
    (async function* () {
      yield JSON.stringify({ messages });
    })(),
    { agent: 'bo', conversation: 'c1', format: 'openai' },
  );
  const found: string[] = [];
  let pages = 0;
  for (let query: string | null = ''; query !== null; pages += 1) {
    const page = await historyOf(stage.url, query);
    found.unshift(...lines(page.messages));
    query = page.next === null ? null : `?before=${page.next}`;
  }
  expect(pages).toBeGreaterThan(2);
  expect(found).toEqual(
    Array.from({ length: 500 }, (_, index) => [`user: question ${index}`, `bo: answer ${index}`]).flat(),
  );
});

test('a conversation that does not exist yet has no messages, and nothing to resume', async () => {
  await using stage = await openStage(['bo']);
  expect(await historyOf(stage.url)).toEqual({ messages: [], next: null });
  const chat = openChat(stage.url);
  await chat.resumeStream();
  expect([chat.status, chat.messages]).toEqual(['ready', []]);
});
