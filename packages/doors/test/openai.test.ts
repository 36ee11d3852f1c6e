import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { heldReply, keyOfMine, openStage, PAY, PAYS } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });

const HANDOFF = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };

test('a client of OpenAI asks an agent in a new conversation, and goes on in it', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Blue.', 'Because of the sky.'] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const { data, response } = await client.chat.completions
    .create({
      model: 'bo',
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Which colour?' },
      ],
    })
    .withResponse();
  expect(data.choices[0]).toMatchObject({
    message: { role: 'assistant', content: 'Blue.' },
    finish_reason: 'stop',
  });
  expect(data.usage?.prompt_tokens).toBeGreaterThan(0);
  const conversation = response.headers.get('x-troupe-conversation') ?? '';
  const { events } = await stage.troupe.events(conversation);
  expect(events[0]).toMatchObject({
    to: ['bo'],
    body: { content: 'Be short.\n\nWhich colour?' },
    context: { channel: 'openai' },
  });
  const there = clientOf(`${stage.url}/api/conversations/${conversation}/v1`);
  const next = await there.chat.completions.create({
    model: 'troupe',
    messages: [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'Which colour?' },
      { role: 'assistant', content: 'Blue.' },
      { role: 'user', content: 'Why?' },
    ],
  });
  expect(next.choices[0]?.message.content).toBe('Because of the sky.');
  const said = (await stage.troupe.events(conversation)).events.filter(
    ({ author }) => author.kind === 'user',
  );
  expect(said.map(({ body }) => (body as { content: string }).content)).toEqual([
    'Be short.\n\nWhich colour?',
    'Why?',
  ]);
});

test('words are streamed as they come, and agents after the first are named', async () => {
  await using stage = await openStage(['desk', 'billing'], {
    agents: { desk: { name: 'Desk', tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: { desk: [{ text: 'One moment.', ...HANDOFF }], billing: ['It is refunded.'] },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const stream = await client.chat.completions.create({
    model: 'desk',
    messages: [{ role: 'user', content: 'Refund it.' }],
    stream: true,
    stream_options: { include_usage: true },
  });
  const pieces: string[] = [];
  let total = 0;
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta.content;
    if (text) pieces.push(text);
    total += chunk.usage?.total_tokens ?? 0;
  }
  expect(pieces.join('')).toBe('One moment.\n\n**Billing:** It is refunded.');
  expect(pieces.length).toBeGreaterThan(3);
  expect(total).toBeGreaterThan(0);
});

test('an approval that is waited for is said, and the answer ends', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS] },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const { choices } = await client.chat.completions.create({
    model: 'bo',
    messages: [{ role: 'user', content: 'Pay.' }],
  });
  expect(choices[0]?.message.content).toMatch(
    /^\[bo waits for approval to call pay \{"euros":5\} \(a-[0-9a-f]+\)\]$/,
  );
});

test('a repeated request with the same key is one message, and gets the same answer', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Once.', 'Twice.'] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const ask = () =>
    client.chat.completions
      .create(
        { model: 'bo', messages: [{ role: 'user', content: 'Go.' }] },
        { headers: { 'idempotency-key': 'k:1' } },
      )
      .withResponse();
  const [first, second] = [await ask(), await ask()];
  expect(second.data.choices).toEqual(first.data.choices);
  expect(second.data.id).toBe(first.data.id);
  expect(stage.requests('bo')).toHaveLength(1);
});

test('the agents are listed as models', async () => {
  await using stage = await openStage(['bo', 'cy']);
  const ids: string[] = [];
  for await (const { id } of clientOf(`${stage.url}/api/v1`).models.list()) ids.push(id);
  expect(ids).toEqual(['troupe', 'bo', 'cy']);
});

test('an image is an attachment of the message', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const url =
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  await client.chat.completions.create({
    model: 'bo',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  });
  const [event] = (await stage.troupe.events('c1')).events;
  expect(event?.body).toMatchObject({ content: 'What is it?', attachments: [{ mediaType: 'image/png' }] });
});

test('an agent that fails is an error of the API, streamed or not', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code: 'provider_invalid_request' } }) },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const request = { model: 'bo', messages: [{ role: 'user' as const, content: 'Go.' }] };
  await expect(client.chat.completions.create(request)).rejects.toMatchObject({ status: 422 });
  const stream = await client.chat.completions.create({ ...request, stream: true });
  await expect(
    (async () => {
      for await (const chunk of stream) void chunk;
    })(),
  ).rejects.toThrow(/@bo/);
});

test.each([
  ['an unknown agent', { model: 'nobody', messages: [{ role: 'user', content: 'x' }] }, 400, 'agent_unknown'],
  ['no words of a user', { model: 'bo', messages: [{ role: 'system', content: 'x' }] }, 400, 'event_invalid'],
  [
    'an answer at the end',
    {
      model: 'bo',
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: 'y' },
      ],
    },
    400,
    'event_invalid',
  ],
  [
    'several answers',
    { model: 'bo', messages: [{ role: 'user', content: 'x' }], n: 2 },
    400,
    'event_invalid',
  ],
  [
    'a sound',
    { model: 'bo', messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] },
    400,
    'event_invalid',
  ],
  [
    'deep rubbish',
    { model: 'bo', messages: JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown },
    400,
    'event_invalid',
  ],
])('%s is refused in words', async (_, body, status, code) => {
  await using stage = await openStage(['bo']);
  const response = await fetch(`${stage.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
    status,
    code,
  ]);
});

test('the door is behind the keys: none is 401, a conversation that was not granted 404', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  const secret = await keyOfMine(stage);
  const ask = (conversation: string, apiKey: string) =>
    clientOf(`${url}/api/conversations/${conversation}/v1`, { apiKey }).chat.completions.create({
      model: 'bo',
      messages: [{ role: 'user', content: 'x' }],
    });
  await expect(ask('mine-1', 'wrong')).rejects.toMatchObject({ status: 401 });
  await expect(ask('yours-1', secret)).rejects.toMatchObject({ status: 404 });
  const mute = await troupe.keys.create({ name: 'sensor', scopes: ['write'] });
  await expect(ask('mine-1', mute.secret)).rejects.toMatchObject({
    status: 403,
    error: { code: 'scope_missing' },
  });
  expect((await ask('mine-1', secret)).choices[0]?.message.content).toBe('bo answers 1');
});

test('a request that is refused because too many are answered is not stored', async () => {
  const held = heldReply('At last.');
  await using stage = await openStage(['bo'], {
    isKeyed: true,
    app: { traffic: { streams: 1 } },
    answers: {
      bo: held.answer,
    },
  });
  const { secret } = await stage.troupe.keys.create({ name: 'phone', scopes: ['read', 'write'] });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`, { apiKey: secret });
  const ask = (content: string) =>
    client.chat.completions.create({ model: 'bo', messages: [{ role: 'user', content }] });
  const first = ask('One.');
  await held.asked;
  await expect(ask('Two.')).rejects.toMatchObject({ status: 429 });
  held.release();
  expect((await first).choices[0]?.message.content).toBe('At last.');
  const { events } = await stage.troupe.events('c1');
  expect(events.filter(({ author }) => author.kind === 'user')).toHaveLength(1);
  // The place is free again.
  expect((await ask('Three.')).choices[0]?.message.content).toBe('At last.');
});
