import { expect, test } from 'vitest';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { startFakeOpenAi, startFakeOpenAiResponses } from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';

const SAID = 'Sun in Zürich.';
const message = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: SAID, annotations: [] }],
};
const response = { id: 'r', model: 'm', status: 'completed', output: [message], usage: null };
const named = (frames: readonly object[]) =>
  frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('');
const word = { type: 'response.output_text.delta', delta: SAID };
const reasoning = { type: 'reasoning', id: 'rs_1', summary: null, content: null, encrypted_content: null };

test.each<[what: string, frames: object[]]>([
  [
    'in its output',
    [word, { type: 'response.completed', response: { ...response, output: [null, message] } }],
  ],
  [
    'as an item',
    [{ type: 'response.output_item.done', item: null }, word, { type: 'response.completed', response }],
  ],
  [
    'as an item that begins',
    [{ type: 'response.output_item.added', item: null }, word, { type: 'response.completed', response }],
  ],
  [
    'for the parts of a message',
    [
      word,
      { type: 'response.completed', response: { ...response, output: [{ ...message, content: null }] } },
    ],
  ],
  [
    'among the parts of a message',
    [
      {
        type: 'response.completed',
        response: { ...response, output: [{ ...message, content: [null, ...message.content] }] },
      },
    ],
  ],
  [
    'for the parts of its reasoning',
    [{ type: 'response.output_item.done', item: reasoning }, word, { type: 'response.completed', response }],
  ],
  [
    'among the parts of its reasoning',
    [
      { type: 'response.output_item.done', item: { ...reasoning, summary: [null, { text: 'hm' }] } },
      word,
      { type: 'response.completed', response },
    ],
  ],
  [
    'for its output',
    [
      word,
      {
        type: 'response.completed',
        response: { ...response, output: null, error: null, incomplete_details: null },
      },
    ],
  ],
])('a response with null %s is read without it', async (_, frames) => {
  const server = await startFakeOpenAiResponses(() => ({
    raw: {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: named(frames),
    },
  }));
  const events = await collectEvents(createOpenAi({ baseUrl: server.url, apiKey: 'k' }));
  expect(textOf(events)).toBe(SAID);
  expect(events.at(-1)).toMatchObject({ type: 'done' });
  await server.close();
});

test('a null among the parts of a text is left out', async () => {
  const delta = { content: [null, { type: 'text', text: SAID }] };
  const body = named([{ id: 'c', choices: [{ index: 0, delta, finish_reason: 'stop' }] }]);
  const headers = { 'content-type': 'text/event-stream' };
  const server = await startFakeOpenAi(() => ({ raw: { status: 200, headers, body } }));
  const events = await collectEvents(createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' }));
  expect(textOf(events)).toBe(SAID);
  await server.close();
});
