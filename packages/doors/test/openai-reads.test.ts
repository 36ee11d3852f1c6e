import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { heldReply, openStage } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });

test.each(['v1', 'conversations/c1/v1'])('a model is given by its id, below /api/%s', async (base) => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/${base}`);
  for (const id of ['bo', 'troupe'])
    expect(await client.models.retrieve(id)).toEqual({ id, object: 'model', created: 0, owned_by: 'troupe' });
  await expect(client.models.retrieve('gpt-5')).rejects.toMatchObject({ status: 404 });
});

test('an answer is given by its id, with the message that it is about', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Blue.', 'The sky.'] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const first = await client.responses.create({
    model: 'bo',
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Which colour?' },
          { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,QmxhdQ==' },
        ],
      },
    ],
  });
  await client.responses.create({ model: 'bo', input: 'Why?', previous_response_id: first.id });
  const again = await client.responses.retrieve(first.id);
  expect(again).toMatchObject({
    id: first.id,
    status: 'completed',
    output: first.output,
    usage: first.usage,
    store: true,
    conversation: first.conversation,
  });
  expect(again.output_text).toBe('Blue.');
  const items: unknown[] = [];
  for await (const item of client.responses.inputItems.list(first.id)) items.push(item);
  expect(items).toMatchObject([
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'Which colour?' },
        { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,QmxhdQ==' },
      ],
    },
  ]);
  const there = clientOf(`${stage.url}/api/conversations/${first.conversation?.id}/v1`);
  expect((await there.responses.retrieve(first.id)).output_text).toBe('Blue.');
});

test('an answer under way is in_progress, and one that failed says so', async () => {
  const open = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let count = 0;
  await using stage = await openStage(['bo'], {
    answers: {
      async bo() {
        count += 1;
        if (count > 1) return { text: '', error: { code: 'provider_auth' } };
        asked.resolve();
        await open.promise;
        return { text: 'At last.' };
      },
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const going = client.responses.create({ model: 'bo', input: 'Go.' });
  await asked.promise;
  expect(await client.responses.retrieve('resp_c1_1')).toMatchObject({ status: 'in_progress', output: [] });
  open.resolve();
  const { id } = await going;
  expect(id).toBe('resp_c1_1');
  expect((await client.responses.retrieve(id)).output_text).toBe('At last.');
  await expect(client.responses.create({ model: 'bo', input: 'Again.' })).rejects.toMatchObject({
    status: 422,
  });
  const { events } = await stage.troupe.events('c1');
  const second = events.findLast(({ author }) => author.kind === 'user')?.seq;
  expect(await client.responses.retrieve(`resp_c1_${second}`)).toMatchObject({
    status: 'failed',
    error: { code: 'provider_auth' },
  });
});

test.each(['after it', 'under way'])('an answer is told again as a stream, asked for %s', async (when) => {
  const held = heldReply('At last, all of it.');
  await using stage = await openStage(['bo'], {
    answers: {
      bo: held.answer,
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const going = client.responses.create({ model: 'bo', input: 'Go.' });
  await held.asked;
  const isOver = when === 'after it';
  if (isOver) {
    held.release();
    await going;
  }
  const stream = await client.responses.retrieve('resp_c1_1', { stream: true });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of stream) {
    if (events.push(event) === 1) held.release();
  }
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
  const words = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []));
  expect(words.join('')).toBe('At last, all of it.');
  const { id, output } = await going;
  expect(events[0]).toMatchObject({ type: 'response.created', response: { id } });
  expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { id, output } });
  const later = client.responses.retrieve(id, { stream: true, starting_after: 3 });
  await expect(later).rejects.toMatchObject({ status: 400 });
});

test('an answer in a form that failed is told again as one that failed', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code: 'provider_auth' } }) },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const text = { format: { type: 'json_object' as const } };
  await expect(client.responses.create({ model: 'bo', input: 'Go.', text })).rejects.toThrow();
  const types: string[] = [];
  for await (const { type } of await client.responses.retrieve('resp_c1_1', { stream: true }))
    types.push(type);
  expect(types).toEqual(['response.created', 'response.in_progress', 'response.failed']);
});

test.each([
  [
    'that was asked for with store: false',
    async (client: OpenAI) => (await client.responses.create({ model: 'bo', input: 'x', store: false })).id,
  ],
  ['of an event that is no message', () => 'resp_c1_2'],
  ['of a conversation that is not there', () => 'resp_nowhere_1'],
  ['of elsewhere', () => 'resp_68af'],
])('there is no answer %s', async (_, idOf) => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/v1`);
  await clientOf(`${stage.url}/api/conversations/c1/v1`).responses.create({ model: 'bo', input: 'x' });
  const id = await idOf(client);
  await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  await expect(client.responses.inputItems.list(id)).rejects.toMatchObject({ status: 404 });
});

test('answers of conversations that were not granted are not there', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  const keyFor = async (pattern: string) =>
    (await troupe.keys.create({ name: pattern, scopes: ['read', 'write'], conversations: [pattern] })).secret;
  const [mine, yours] = [await keyFor('mine-*'), await keyFor('yours-*')];
  const { id } = await clientOf(`${url}/api/v1`, { apiKey: mine }).responses.create({
    model: 'bo',
    input: 'x',
  });
  expect(id).toMatch(/^resp_mine-/);
  await expect(clientOf(`${url}/api/v1`, { apiKey: yours }).responses.retrieve(id)).rejects.toMatchObject({
    status: 404,
  });
});

test.each([
  [
    'chat completions, a data URL',
    'chat',
    { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' },
  ],
  ['chat completions, bare base64', 'chat', { filename: 'a.pdf', file_data: 'JVBERg==' }],
  [
    'responses, a data URL',
    'responses',
    { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' },
  ],
  ['responses, bare base64', 'responses', { filename: 'a.pdf', file_data: 'JVBERg==' }],
])('a file is an attachment of the message: %s', async (_, way, file) => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  if (way === 'chat')
    await client.chat.completions.create({
      model: 'bo',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Read.' },
            { type: 'file', file },
          ],
        },
      ],
    });
  else
    await client.responses.create({
      model: 'bo',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Read.' },
            { type: 'input_file', ...file },
          ],
        },
      ],
    });
  const [event] = (await stage.troupe.events('c1')).events;
  expect(event?.body).toMatchObject({
    content: 'Read.',
    attachments: [{ type: 'file', mediaType: 'application/pdf', name: 'a.pdf' }],
  });
});
