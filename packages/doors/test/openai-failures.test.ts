import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { heldReply, openStage } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });
const GO = { model: 'bo', messages: [{ role: 'user' as const, content: 'Go.' }] };

test('an answer that the limit of its model has cut says so, whole and streamed, by both APIs', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: 'It was cu', stop: 'length' }) },
  });
  const client = clientOf(`${stage.url}/api/v1`);
  const { choices } = await client.chat.completions.create(GO);
  expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'It was cu' } });
  const ends: unknown[] = [];
  for await (const chunk of await client.chat.completions.create({ ...GO, stream: true }))
    ends.push(chunk.choices[0]?.finish_reason);
  expect(ends.at(-1)).toBe('length');
  const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  const whole = await client.responses.create({ model: 'bo', input: 'Go.' });
  expect(whole).toMatchObject({ ...cut, output: [{ status: 'incomplete' }] });
  expect(whole.output_text).toBe('It was cu');
  const types: string[] = [];
  for await (const event of await client.responses.create({ model: 'bo', input: 'Go.', stream: true })) {
    types.push(event.type);
    if (event.type === 'response.incomplete') expect(event.response).toMatchObject(cut);
  }
  expect(types.at(-1)).toBe('response.incomplete');
});

test.each([
  ['provider_invalid_request', 422],
  ['provider_auth', 422],
  ['provider_quota', 422],
  ['provider_model_unknown', 422],
  ['provider_refused', 422],
] as const)('a failure that would come again, %s, is no status that SDKs repeat', async (code, status) => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code } }) },
  });
  const client = clientOf(`${stage.url}/api/v1`, { maxRetries: 2 });
  await expect(client.chat.completions.create(GO)).rejects.toMatchObject({ status, error: { code } });
  await expect(client.responses.create({ model: 'bo', input: 'Go.' })).rejects.toMatchObject({ status });
  expect(stage.requests('bo')).toHaveLength(2);
  expect(await stage.troupe.conversations()).toHaveLength(2);
});

test('a failure that may pass is 502, and SDKs of OpenAI are told not to begin another conversation', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code: 'provider_failed' } }) },
  });
  const client = clientOf(`${stage.url}/api/v1`, { maxRetries: 2 });
  await expect(client.chat.completions.create(GO)).rejects.toMatchObject({
    status: 502,
    error: { code: 'provider_failed' },
  });
  expect(await stage.troupe.conversations()).toHaveLength(1);
});

test('a stream of a failed response ends with response.failed, whatever was said before', async () => {
  await using stage = await openStage(['bo'], {
    answers: {
      bo: () => ({ text: 'Once upon a time', chunk: 4, error: { code: 'provider_auth', after: 2 } }),
    },
  });
  const client = clientOf(`${stage.url}/api/v1`);
  const events = [];
  for await (const event of await client.responses.create({ model: 'bo', input: 'Go.', stream: true }))
    events.push(event);
  const last = events.at(-1);
  expect(last).toMatchObject({
    type: 'response.failed',
    response: {
      status: 'failed',
      error: { code: 'provider_auth', message: expect.stringMatching(/^@bo: /) },
      output: [{ status: 'incomplete', content: [{ text: 'Once upo' }] }],
    },
  });
});

test('a client that gives up is no error of the server, and the agent goes on', async () => {
  const held = heldReply('At last.');
  const errors: unknown[] = [];
  await using stage = await openStage(['bo'], {
    app: { onError: (error) => void errors.push(error) },
    answers: {
      bo: held.answer,
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const leave = new AbortController();
  const first = client.chat.completions.create(GO, { signal: leave.signal });
  await held.asked;
  leave.abort();
  await expect(first).rejects.toThrow(/aborted/i);
  held.release();
  await stage.troupe.idle();
  const { events } = await stage.troupe.events('c1');
  expect(events.at(-1)?.kind).toBe('turn.done');
  // When a later request is answered, the server has noticed that the first client left.
  await client.chat.completions.create(GO);
  expect(errors).toEqual([]);
});
