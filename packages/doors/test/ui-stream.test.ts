import { DefaultChatTransport } from 'ai';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../../src/tools/tool.ts';
import { openStage, PAY, PAYS } from './stage.ts';
import { atRest, chunksIn, chunksOf, historyOf, lines, openChat, plain, resume, say } from './ui-chat.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const HANDOFF = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };
const NOW = { body: { to: ['bo'] } };

test('a chat shows the words of several agents, each after its author, and the history is the same', async () => {
  await using stage = await openStage(['desk', 'billing'], {
    agents: { desk: { name: 'Desk', tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: { desk: [{ reasoning: 'Hm.', text: 'One moment.', ...HANDOFF }], billing: ['It is refunded.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Refund it.' }, { body: { to: ['desk'] } });
  expect(chat.error).toBeUndefined();
  expect(lines(chat.messages)).toEqual([
    'user: Refund it.',
    'Desk thinks: Hm.',
    'Desk: One moment.',
    'Desk calls handoff: output-available',
    'Billing: It is refunded.',
  ]);
  const parts = chat.messages[1]?.parts ?? [];
  expect(parts.find(({ type }) => type === 'data-handoff')).toMatchObject({
    data: { from: 'desk', to: ['billing'], goal: 'refund' },
  });
  expect(parts.find(({ type }) => type === 'text')).toMatchObject({
    state: 'done',
    providerMetadata: { troupe: { agent: 'desk', turn: 'c1:desk:1' } },
  });
  const { messages, next } = await historyOf(stage.url);
  expect(lines(messages)).toEqual(lines(chat.messages).filter((line) => !line.includes('thinks')));
  expect(messages.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
  expect(next).toBeNull();
});

test('an approval is given in the chat, and the same message goes on', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [{ text: 'I pay.', ...PAYS }, 'It is paid.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.' });
  expect(lines(chat.messages).at(-1)).toBe('bo calls pay: approval-requested');
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  const { id } = (part as { approval: { id: string } }).approval;
  expect(part).toMatchObject({ input: { euros: 5 }, approval: { descriptor: { agent: 'bo', by: [] } } });
  await chat.addToolApprovalResponse({ id, approved: true, reason: 'fine' });
  await untilHolds(() => expect(lines(chat.messages).at(-1)).toBe('bo: It is paid.'));
  await atRest(chat);
  expect(lines(chat.messages)).toEqual([
    'user: Pay.',
    'bo: I pay.',
    'bo calls pay: output-available',
    'bo: It is paid.',
  ]);
  expect(chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool')).toMatchObject({
    output: 'paid 5',
    approval: { approved: true, reason: 'fine' },
  });
  expect(stage.requests('bo')).toHaveLength(2);
  const { messages } = await historyOf(stage.url);
  expect(plain(messages)).toEqual(plain(chat.messages));
  expect((await fetch(`${stage.url}/api/conversations/c1/chat/stream`)).status).toBe(204);
});

test('a denied call is denied, and the agent says what follows', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS, 'Then not.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.' });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  await chat.addToolApprovalResponse({
    id: (part as { approval: { id: string } }).approval.id,
    approved: false,
  });
  await untilHolds(() => expect(lines(chat.messages).at(-1)).toBe('bo: Then not.'));
  await atRest(chat);
  expect(lines(chat.messages)).toContain('bo calls pay: output-denied');
  expect(plain((await historyOf(stage.url)).messages)).toEqual(plain(chat.messages));
});

test('an approved call of an agent that is paused ends the answer, and is not sent again and again', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS, 'It is paid.'] },
  });
  let posts = 0;
  const chat = openChat(stage.url, {
    transport: new DefaultChatTransport({
      api: `${stage.url}/api/conversations/c1/chat`,
      fetch: (...request) => {
        posts += 1;
        return fetch(...request);
      },
    }),
  });
  await chat.sendMessage({ text: 'Pay.' });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  const vik = { kind: 'user', id: 'vik', name: 'Vik' } as const;
  await stage.troupe.command({ command: 'pause', conversation: 'c1', agent: 'bo' }, vik);
  const { id } = (part as { approval: { id: string } }).approval;
  await chat.addToolApprovalResponse({ id, approved: true });
  await expect.poll(() => lines(chat.messages).at(-1)).toBe('bo calls pay: output-error');
  await atRest(chat);
  expect(posts).toBe(2);
  await stage.troupe.command({ command: 'resume', conversation: 'c1', agent: 'bo' }, vik);
  await stage.troupe.idle();
  expect(lines((await historyOf(stage.url)).messages).slice(-2)).toEqual([
    'bo calls pay: output-available',
    'bo: It is paid.',
  ]);
});

test('the decision of somebody else counts, and is shown', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS, 'Then not.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.' });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  const { id } = (part as { approval: { id: string } }).approval;
  const vik = { kind: 'user', id: 'vik', name: 'Vik' } as const;
  await stage.troupe.command({ command: 'decide', conversation: 'c1', request: id, approved: false }, vik);
  await stage.troupe.idle();
  await chat.addToolApprovalResponse({ id, approved: true });
  await untilHolds(() => expect(lines(chat.messages).at(-1)).toBe('bo: Then not.'));
  await atRest(chat);
  expect(lines(chat.messages)).toContain('bo calls pay: output-denied');
});

test('a question is answered by the next message', async () => {
  const args = JSON.stringify({ question: 'Which colour?', choices: ['red', 'blue'] });
  await using stage = await openStage(['bo'], {
    agents: { bo: { tools: ['ask'] } },
    answers: { bo: [{ calls: [{ name: 'ask', args }] }, 'Blue it is.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Paint.' });
  const question = chat.messages[1]?.parts.find(({ type }) => type === 'data-question');
  expect(question).toMatchObject({ data: { agent: 'bo', text: 'Which colour?', choices: ['red', 'blue'] } });
  const data = { question: (question as { data: { question: string } }).data.question };
  await chat.sendMessage({
    parts: [
      { type: 'text', text: 'blue' },
      { type: 'data-answer', data },
    ],
  });
  expect(chat.error).toBeUndefined();
  expect(lines(chat.messages).slice(-2)).toEqual(['user: blue', 'bo: Blue it is.']);
  const { messages } = await historyOf(stage.url);
  expect(lines(messages)).toEqual(lines(chat.messages));
});

test('words of a model call that failed are named void', async () => {
  await using stage = await openStage(['bo'], {
    answers: {
      bo: [{ text: 'A lost beginning of words', breaks: { after: 2, how: 'cut' } }, 'Whole words.'],
    },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Go.' });
  const parts = chat.messages[1]?.parts ?? [];
  const gone = parts.flatMap((part) =>
    part.type === 'data-void' ? (part.data as { ids: string[] }).ids : [],
  );
  const counts = parts.filter((part) => {
    const origin = part.type === 'text' ? part.providerMetadata?.['troupe'] : undefined;
    return typeof origin?.['id'] === 'string' && !gone.includes(origin['id']);
  });
  expect(gone.length).toBeGreaterThan(0);
  expect(counts.map((part) => (part as { text: string }).text)).toEqual(['Whole words.']);
});

test('a call that its model did not finish has an end, and is named void', async () => {
  const look = defineTool({ name: 'look', description: '', schema: z.object({}), run: () => 'a cat' });
  const args = JSON.stringify({ where: 'in the box behind the door' });
  await using stage = await openStage(['bo'], {
    tools: [look],
    agents: { bo: { tools: ['look'] } },
    answers: {
      bo: [{ calls: [{ name: 'look', args }], chunk: 4, breaks: { after: 3, how: 'cut' } }, 'Whole.'],
    },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Go.' });
  const parts = chat.messages[1]?.parts ?? [];
  const call = parts.find((part) => part.type === 'dynamic-tool');
  expect(call).toMatchObject({ toolName: 'look', state: 'output-error' });
  expect(call?.errorText).toMatch(/^void: /);
  expect(parts).toContainEqual(
    expect.objectContaining({
      type: 'data-void',
      data: expect.objectContaining({ ids: [call?.toolCallId] }),
    }),
  );
  expect([chat.status, lines(chat.messages).at(-1)]).toEqual(['ready', 'bo: Whole.']);
});

test('a message is sent once, and a repeated request tells the same answer', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Once.', 'Twice.'] } });
  const post = () =>
    fetch(`${stage.url}/api/conversations/c1/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        id: 'c1',
        trigger: 'regenerate-message',
        messages: [
          { id: 'old', role: 'user', parts: [{ type: 'text', text: 'Of another time.' }] },
          { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] },
        ],
      }),
    });
  const first = await post();
  expect(first.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
  expect(await chunksIn(await post())).toMatchObject([
    { type: 'start', messageId: 'answer-1' },
    { type: 'data-author', data: { id: 'bo' } },
    { type: 'text-start' },
    { type: 'text-delta', delta: 'Once.' },
    { type: 'text-end' },
    { type: 'finish', finishReason: 'stop' },
  ]);
  await first.text();
  const { events } = await stage.troupe.events('c1');
  expect(events.filter(({ author }) => author.kind === 'user')).toMatchObject([
    { id: 'm1', body: { content: 'Go.' }, context: { channel: 'ai-sdk' } },
  ]);
});

test('words come as the model writes them', async () => {
  let go = () => {};
  const wait = new Promise<void>((resolve) => (go = resolve));
  const look = defineTool({
    name: 'look',
    description: '',
    schema: z.object({}),
    run: () => wait.then(() => 'a cat'),
  });
  await using stage = await openStage(['bo'], {
    tools: [look],
    agents: { bo: { tools: ['look'] } },
    answers: { bo: [{ text: 'One two.', chunk: 4, calls: [{ name: 'look', args: '{}' }] }, 'A cat.'] },
  });
  const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(say([{ type: 'text', text: 'Go.' }])),
  });
  // The words before the call are there while the call runs.
  let text = '';
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (wordsIn(text) === 'One two.') go();
  }
  expect(wordsIn(text)).toBe('One two.A cat.');
});

function wordsIn(stream: string): string {
  return chunksOf(stream)
    .flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.delta] : []))
    .join('');
}

test('an agent that fails is an error of the chat', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code: 'provider_invalid_request' } }) },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Go.' });
  expect(chat.error?.message).toMatch(/^@bo: /);
  expect(chat.messages[1]?.parts.at(-1)).toMatchObject({ type: 'data-failure', data: { agent: 'bo' } });
});

test('a chat that loads shows what is there, and resumes the answer under way', async () => {
  let go = () => {};
  const wait = new Promise<void>((resolve) => (go = resolve));
  await using stage = await openStage(['bo'], {
    answers: {
      bo: async (request) => {
        if (JSON.stringify(request.body).includes('Second')) await wait;
        return { text: 'Some words of bo.' };
      },
    },
  });
  const first = openChat(stage.url);
  await first.sendMessage({ text: 'First.' }, NOW);
  const going = first.sendMessage({ text: 'Second.' }, NOW);
  await untilHolds(() => expect(stage.requests('bo')).toHaveLength(2));
  const { messages } = await historyOf(stage.url);
  const second = openChat(stage.url, { messages });
  const resumed = resume(second);
  await resumed.opened;
  go();
  await Promise.all([going, resumed.done]);
  expect(plain(second.messages)).toEqual(plain(first.messages));
  expect(lines(second.messages)).toEqual([
    'user: First.',
    'bo: Some words of bo.',
    'user: Second.',
    'bo: Some words of bo.',
  ]);
});
