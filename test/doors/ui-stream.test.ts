import { expect, test, vi } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { openStage } from './stage.ts';
import { atRest, chunksIn, historyOf, lines, openChat, plain } from './ui-chat.ts';

const HANDOFF = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };
const NOW = { body: { to: ['bo'] } };

const pay = defineTool({
  name: 'pay',
  description: '',
  schema: z.object({ euros: z.number() }),
  needsApproval: true,
  run: ({ euros }) => `paid ${euros}`,
});
const PAY = { calls: [{ name: 'pay', args: '{"euros":5}' }] };

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
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [{ text: 'I pay.', ...PAY }, 'It is paid.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.' });
  expect(lines(chat.messages).at(-1)).toBe('bo calls pay: approval-requested');
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  const { id } = (part as { approval: { id: string } }).approval;
  expect(part).toMatchObject({ input: { euros: 5 }, approval: { descriptor: { agent: 'bo', by: [] } } });
  await chat.addToolApprovalResponse({ id, approved: true, reason: 'fine' });
  await vi.waitFor(() => expect(lines(chat.messages).at(-1)).toBe('bo: It is paid.'));
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
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAY, 'Then not.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.' });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  await chat.addToolApprovalResponse({
    id: (part as { approval: { id: string } }).approval.id,
    approved: false,
  });
  await vi.waitFor(() => expect(lines(chat.messages).at(-1)).toBe('bo: Then not.'));
  await atRest(chat);
  expect(lines(chat.messages)).toContain('bo calls pay: output-denied');
  expect(plain((await historyOf(stage.url)).messages)).toEqual(plain(chat.messages));
});

test('the decision of somebody else counts, and is shown', async () => {
  await using stage = await openStage(['bo'], {
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAY, 'Then not.'] },
  });
  const chat = openChat(stage.url);
  await chat.sendMessage({ text: 'Pay.' });
  const part = chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool');
  const { id } = (part as { approval: { id: string } }).approval;
  const vik = { kind: 'user', id: 'vik', name: 'Vik' } as const;
  await stage.troupe.command({ command: 'decide', conversation: 'c1', request: id, approved: false }, vik);
  await stage.troupe.idle();
  await chat.addToolApprovalResponse({ id, approved: true });
  await vi.waitFor(() => expect(lines(chat.messages).at(-1)).toBe('bo: Then not.'));
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
  await using stage = await openStage(['bo'], {
    answers: { bo: [{ text: 'One two three four.', chunk: 4 }] },
  });
  const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(say([{ type: 'text', text: 'Go.' }])),
  });
  const deltas = (await chunksIn(response)).flatMap((chunk) =>
    chunk.type === 'text-delta' ? [chunk.delta] : [],
  );
  expect(deltas).toEqual(['One ', 'two ', 'thre', 'e fo', 'ur.']);
});

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
  await vi.waitFor(() => expect(stage.requests('bo')).toHaveLength(2));
  const { messages } = await historyOf(stage.url);
  const second = openChat(stage.url, { messages });
  const resumed = second.resumeStream();
  go();
  await Promise.all([going, resumed]);
  expect(plain(second.messages)).toEqual(plain(first.messages));
  expect(lines(second.messages)).toEqual([
    'user: First.',
    'bo: Some words of bo.',
    'user: Second.',
    'bo: Some words of bo.',
  ]);
});

const say = (parts: unknown, more: object = {}) => ({
  messages: [{ id: 'm1', role: 'user', parts, ...more }],
});
const deep = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown;

test.each([
  ['no messages', { messages: [] }],
  ['no list of messages', { messages: 'x' }],
  ['a message without parts', { messages: [{ id: 'm1', role: 'user' }] }],
  ['a message without an id', { messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }] }],
  ['no words', say([{ type: 'text', text: '' }])],
  ['words of the system', say([{ type: 'text', text: 'x' }], { role: 'system' })],
  ['an answer without decisions', say([{ type: 'text', text: 'x' }], { role: 'assistant' })],
  ['a part without a type', say([{ text: 'x' }])],
  ['deep rubbish', say(deep)],
  ['many messages', { messages: Array.from({ length: 10_001 }, () => 0) }],
  ['an answer to nothing', say([{ type: 'data-answer', data: 'x' }])],
  ['a file that is not base64', say([{ type: 'file', mediaType: 'text/plain', url: 'data:text/plain,x' }])],
  ['a file that is no base64', say([{ type: 'file', mediaType: 'text/plain', url: 'data:;base64,?' }])],
  ['an agent that does not exist', { ...say([{ type: 'text', text: 'x' }]), to: ['nobody'] }],
])('%s is refused in words', async (_, body) => {
  await using stage = await openStage(['bo']);
  const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error: { code: string } };
  expect([response.status, error.code]).toEqual([
    400,
    expect.stringMatching(/^(?:event_invalid|agent_unknown)$/),
  ]);
});

test('an id of the runtime is refused, and an id with other words conflicts', async () => {
  await using stage = await openStage(['bo']);
  const post = async (id: string, text: string) => {
    const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(say([{ type: 'text', text }], { id })),
    });
    await response.text();
    return response.status;
  };
  expect([await post('c1:bo:1', 'x'), await post('m1', 'x'), await post('m1', 'y')]).toEqual([409, 200, 409]);
});

test('words over 1 MiB are refused, and old messages may be longer', async () => {
  await using stage = await openStage(['bo']);
  const post = async (...texts: string[]) => {
    const messages = texts.map((text, index) => ({
      id: `m${index}`,
      role: 'user',
      parts: [{ type: 'text', text }],
    }));
    const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages }),
    });
    await response.text();
    return response.status;
  };
  const long = 'x'.repeat(1_100_000);
  expect([await post(long), await post(long, 'short')]).toEqual([413, 200]);
});

test.each([
  ['nothing/a-1', 404],
  ['a-1', 404],
  ['..%2f/a-1', 404],
  ['/', 404],
  ['c1/', 400],
  ['yours-1/a-1', 404],
])('a decision of %s is refused', async (id, status) => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const conversations = ['c1'];
  const { secret } = await stage.troupe.keys.create({ name: 'p', scopes: ['read', 'write'], conversations });
  const vik = { kind: 'user', id: 'vik', name: 'Vik' } as const;
  for (const conversation of ['c1', 'yours-1'])
    await stage.troupe.send(conversation, { author: vik, to: ['bo'], content: 'x' });
  await stage.troupe.idle();
  const part = { type: 'dynamic-tool', state: 'approval-responded', approval: { id, approved: true } };
  const response = await fetch(`${stage.url}/api/conversations/c1/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ messages: [{ id: 'answer-1', role: 'assistant', parts: [part] }] }),
  });
  expect([response.status, await response.text()]).toEqual([status, expect.any(String)]);
});

test('the door is behind the keys: none is 401, a conversation that was not granted 404', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  const { secret } = await troupe.keys.create({
    name: 'phone',
    scopes: ['read', 'write'],
    conversations: ['mine-*'],
  });
  async function ask(conversation: string, key: string, path = ''): Promise<number> {
    const method = path === '' ? 'POST' : 'GET';
    const address = `${url}/api/conversations/${conversation}/chat${path.replace('.', '')}`;
    const response = await fetch(address, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(method === 'POST' && { body: JSON.stringify(say([{ type: 'text', text: 'x' }])) }),
    });
    await response.text();
    return response.status;
  }
  expect(await ask('mine-1', 'wrong')).toBe(401);
  for (const path of ['', '.', '/stream', '/x/stream'])
    expect([path, await ask('yours-1', secret, path)]).toEqual([path, 404]);
  expect(await ask('mine-1', secret, '/stream')).toBe(204);
  expect(await ask('mine-1', secret)).toBe(200);
  expect(await ask('mine-1', secret, '.')).toBe(200);
});
