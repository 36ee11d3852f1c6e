import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { openStage } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });

test('an answer is gone on from by its id, and by its conversation', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Blue.', 'The sky.', 'Yes.'] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const first = await client.responses.create({
    model: 'bo',
    instructions: 'Be short.',
    input: 'Which colour?',
  });
  expect([first.output_text, first.status]).toEqual(['Blue.', 'completed']);
  expect(first.usage?.input_tokens).toBeGreaterThan(0);
  const second = await client.responses.create({
    model: 'bo',
    input: 'Why?',
    previous_response_id: first.id,
  });
  expect(second.output_text).toBe('The sky.');
  const conversation = second.conversation?.id ?? '';
  const third = await client.responses.create({
    model: 'bo',
    conversation,
    instructions: 'Be short.',
    input: [
      { role: 'user', content: 'Why?' },
      { role: 'assistant', content: 'The sky.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Really?' }] },
    ],
  });
  expect(third.output_text).toBe('Yes.');
  const { events } = await stage.troupe.events(conversation);
  const said = events.flatMap(({ author, body }) =>
    author.kind === 'user' ? [(body as { content: string }).content] : [],
  );
  expect(said).toEqual(['Be short.\n\nWhich colour?', 'Why?', 'Really?']);
});

test('a stream gives the words as they come, and the whole answer at its end', async () => {
  await using stage = await openStage(['desk', 'billing'], {
    agents: { desk: { tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: {
      desk: [{ text: 'One moment.', calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] }],
      billing: ['It is refunded.'],
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const stream = client.responses.stream({ model: 'desk', input: 'Refund it.' });
  const pieces: string[] = [];
  const numbers: number[] = [];
  for await (const event of stream) {
    numbers.push(event.sequence_number);
    if (event.type === 'response.output_text.delta') pieces.push(event.delta);
  }
  const whole = await stream.finalResponse();
  expect(whole.output_text).toBe('One moment.\n\n**Billing:** It is refunded.');
  expect(pieces.join('')).toBe(whole.output_text);
  expect(pieces.length).toBeGreaterThan(3);
  expect(numbers).toEqual(numbers.map((_, index) => index));
});

test('a failure is an event of the stream', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code: 'provider_invalid_request' } }) },
  });
  const stream = await clientOf(`${stage.url}/api/v1`).responses.create({
    model: 'bo',
    input: 'Go.',
    stream: true,
  });
  const types: string[] = [];
  for await (const event of stream) {
    types.push(event.type);
    if (event.type === 'response.failed')
      expect(event.response.error).toMatchObject({ code: 'provider_invalid_request' });
  }
  expect(types.at(-1)).toBe('response.failed');
});

test.each([
  ['the id of an answer of elsewhere', { previous_response_id: 'resp-1' }],
  ['another conversation than that of the path', { conversation: 'c2' }],
  ['a wrong conversation', { conversation: 'no such/id' }],
  ['an answer for later', { background: true }],
  ['no words', { input: [{ role: 'assistant', content: 'x' }] }],
  ['a file', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] }],
])('%s is refused in words', async (_, more) => {
  await using stage = await openStage(['bo']);
  const response = await fetch(`${stage.url}/api/conversations/c1/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'bo', input: 'x', ...more }),
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: 'event_invalid' } });
});
