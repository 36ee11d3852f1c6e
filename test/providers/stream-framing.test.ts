import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolCall } from '../../src/events/index.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelEvent, Provider } from '../../src/providers/provider.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';

const SAID = 'Sun in Zürich 🌞.';
const ARGS = '{"a":1}';
type Frame = Record<string, unknown> & { type?: string };

interface Api {
  start: typeof startFakeOpenAi;
  provider: (baseUrl: string) => Provider;
  /** An answer with text and a call, in events and whole. */
  frames: Frame[];
  whole: Frame;
}

const chunk = (delta: object, finish: string | null = null): Frame => ({
  id: 'c',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const chatCall = { id: 'a1', type: 'function', function: { name: 'add', arguments: ARGS } };
const message = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: SAID, annotations: [] }],
};
const item = { type: 'function_call', id: 'fc_1', call_id: 'a1', name: 'add', arguments: ARGS };
const response = { id: 'r', model: 'm', status: 'completed', output: [message, item], usage: null };

const APIS: Record<string, Api> = {
  'chat completions': {
    start: startFakeOpenAi,
    provider: (baseUrl) => createOpenAiCompatible({ baseUrl, apiKey: 'k' }),
    frames: [
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: SAID }),
      chunk({ tool_calls: [{ index: 0, ...chatCall }] }),
      chunk({}, 'tool_calls'),
    ],
    whole: {
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: SAID, tool_calls: [chatCall] },
          finish_reason: 'tool_calls',
        },
      ],
    },
  },
  responses: {
    start: startFakeOpenAiResponses,
    provider: (baseUrl) => createOpenAi({ baseUrl, apiKey: 'k' }),
    frames: [
      { type: 'response.output_text.delta', delta: SAID },
      { type: 'response.output_item.done', item: message },
      { type: 'response.output_item.done', item },
      { type: 'response.completed', response },
    ],
    whole: { object: 'response', ...response },
  },
  messages: {
    start: startFakeAnthropic,
    provider: (baseUrl) => createAnthropic({ baseUrl, apiKey: 'k' }),
    frames: [
      { type: 'message_start', message: { id: 'm1', usage: { input_tokens: 5 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: SAID } },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 'a1', name: 'add', input: {} },
      },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: ARGS } },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
    ],
    whole: {
      type: 'message',
      id: 'm1',
      content: [
        { type: 'text', text: SAID },
        { type: 'tool_use', id: 'a1', name: 'add', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 5, output_tokens: 9 },
    },
  },
};

const named = (frame: Frame) =>
  `${frame.type ? `event: ${frame.type}\n` : ''}data: ${JSON.stringify(frame)}\n\n`;
const bare = (frame: Frame) => `data: ${JSON.stringify(frame)}\n\n`;
type Answer = Pick<Api, 'frames' | 'whole'>;
const FRAMINGS: Record<string, (answer: Answer) => string> = {
  'as the vendor does': ({ frames }) => frames.map(named).join(''),
  'events without names': ({ frames }) => frames.map(bare).join(''),
  'types in the names of events alone': ({ frames }) =>
    frames
      .map(({ type, ...rest }) => `event: ${type ?? 'message'}\ndata: ${JSON.stringify(rest)}\n\n`)
      .join(''),
  'names, ids and a retry': ({ frames }) => frames.map((each) => `id: 7\nretry: 10\n${named(each)}`).join(''),
  'data without a space': ({ frames }) => frames.map(bare).join('').replaceAll('data: ', 'data:'),
  'carriage returns': ({ frames }) => frames.map(named).join('').replaceAll('\n', '\r'),
  'both line ends': ({ frames }) => frames.map(named).join('').replaceAll('\n', '\r\n'),
  'a byte order mark in front': ({ frames }) => `\ufeff${frames.map(named).join('')}`,
  'comments, empty data and words that keep the connection open': ({ frames }) =>
    frames
      .map((each) => `: PROCESSING\n\ndata:\n\ndata: ping\n\nevent: ping\ndata: {}\n\n${named(each)}`)
      .join(''),
  'a last event with one line end': ({ frames }) => frames.map(named).join('').slice(0, -1),
  'a last event with no line end': ({ frames }) => frames.map(named).join('').slice(0, -2),
  'JSON over several lines of data': ({ frames }) =>
    frames
      .map(
        (each) =>
          `${each.type ? `event: ${each.type}\n` : ''}data: ${JSON.stringify(each, null, 1).replaceAll('\n', '\ndata: ')}\n\n`,
      )
      .join(''),
  'an end mark with a space': ({ frames }) => `${frames.map(named).join('')}data: [DONE] \n\n`,
  'a line of JSON for each event': ({ frames }) => frames.map((each) => `${JSON.stringify(each)}\n`).join(''),
  'events in a list': ({ frames }) => JSON.stringify(frames),
  'one JSON document': ({ whole }) => JSON.stringify(whole),
  'one JSON document in many lines': ({ whole }) => ` \n${JSON.stringify(whole, null, 2)}\n`,
  'one JSON document and an end mark': ({ whole }) => `${JSON.stringify(whole)}\n\ndata: [DONE]\n\n`,
  'the whole answer as one event': ({ whole }) => `${bare(whole)}data: [DONE]\n\n`,
};

function callsIn(events: readonly ModelEvent[]): ToolCall[] {
  return events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
}

describe.each(Object.entries(APIS))('%s', (_, api) => {
  let server: FakeServer;
  let body: string;
  let type: string;
  beforeAll(async () => {
    server = await api.start(() => ({ raw: { status: 200, headers: { 'content-type': type }, body } }));
  });
  afterAll(() => server.close());

  async function answered(text: string, contentType = 'text/event-stream') {
    body = text;
    type = contentType;
    return collectEvents(api.provider(server.url));
  }

  test.each(Object.entries(FRAMINGS))('reads %s', async (__, frame) => {
    for (const contentType of ['text/event-stream', 'application/json', 'text/plain; charset=utf-8']) {
      const events = await answered(frame(api), contentType);
      expect(textOf(events)).toBe(SAID);
      expect(callsIn(events)).toEqual([{ id: 'a1', name: 'add', args: ARGS }]);
      expect(events.at(-1)).toMatchObject({ type: 'done', stop: 'calls' });
    }
  });

  test('a stream that is cut within its last event is incomplete', async () => {
    const text = FRAMINGS['as the vendor does']?.(api) ?? '';
    const events = await answered(text.slice(0, -20));
    expect(events.at(-1)).toMatchObject({ error: { code: 'provider_truncated' } });
  });

  test('a document that is cut is incomplete', async () => {
    const events = await answered(JSON.stringify(api.whole).slice(0, -20));
    expect(events.at(-1)).toMatchObject({ error: { code: 'provider_truncated' } });
  });

  test.each([
    ['an event', (error: object) => bare({ error })],
    [
      'an event named error',
      (error: object) => `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`,
    ],
    ['a document', (error: object) => JSON.stringify({ error })],
    ['a document in a list', (error: object) => JSON.stringify([{ error }])],
  ])('an error that comes as %s with status 200 is one', async (__, frame) => {
    const events = await answered(frame({ code: 429, message: 'slow down, retry in 7 seconds' }));
    expect(events.at(-1)).toMatchObject({
      error: {
        code: 'provider_rate_limited',
        retryAfterMs: 7000,
        message: expect.stringContaining('slow down'),
      },
    });
  });

  test('an error in words alone is told in these words', async () => {
    const events = await answered('event: error\ndata: upstream is gone\n\n');
    expect(events.at(-1)).toMatchObject({ error: { message: expect.stringContaining('upstream is gone') } });
  });

  test('what is no JSON and no sign of life fails the call', async () => {
    const events = await answered('data: Internal Server Error\n\n');
    expect(events.at(-1)).toMatchObject({
      error: { code: 'provider_failed', message: expect.stringContaining('Internal Server Error') },
    });
  });
});

describe('chat completions: a whole message beside pieces', () => {
  let server: FakeServer;
  let frames: Frame[];
  beforeAll(async () => {
    server = await startFakeOpenAi(() => ({
      raw: {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: frames.map(bare).join(''),
      },
    }));
  });
  afterAll(() => server.close());
  const beside = (delta: object, whole: object, finish: string | null = null): Frame => ({
    choices: [{ index: 0, delta, message: whole, finish_reason: finish }],
  });

  test.each<[string, Frame[], number]>([
    [
      'that grows with them',
      [beside({ content: 'Su' }, { content: 'Su' }), beside({ content: 'n.' }, { content: 'Sun.' }, 'stop')],
      0,
    ],
    ['that alone has the end', [beside({ content: 'Su' }, { content: 'Sun.' }, 'stop')], 0],
    ['that alone has the text', [beside({ role: 'assistant' }, { content: 'Sun.' }, 'stop')], 0],
    [
      'that alone has the call',
      [beside({ content: 'Sun.' }, { content: 'Sun.', tool_calls: [chatCall] }, 'tool_calls')],
      1,
    ],
    [
      'that repeats the call',
      [
        beside(
          { content: 'Sun.', tool_calls: [{ index: 0, ...chatCall }] },
          { tool_calls: [chatCall] },
          'tool_calls',
        ),
      ],
      1,
    ],
    ['in parts', [beside({}, { content: [{ type: 'text', text: 'Sun.' }] }, 'stop')], 0],
  ])('is read once: one %s', async (_, given, calls) => {
    frames = given;
    const events = await collectEvents(createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' }));
    expect(textOf(events)).toBe('Sun.');
    expect(callsIn(events)).toHaveLength(calls);
    expect(events.at(-1)).toMatchObject({ type: 'done' });
  });
});

describe('responses: what only a later event holds', () => {
  let server: FakeServer;
  let frames: Frame[];
  beforeAll(async () => {
    server = await startFakeOpenAiResponses(() => ({
      raw: {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: frames.map(named).join(''),
      },
    }));
  });
  afterAll(() => server.close());
  const done = (each: object): Frame => ({ type: 'response.output_item.done', item: each });
  const completed = (output: unknown[] | null): Frame => ({
    type: 'response.completed',
    response: { ...response, output },
  });
  const delta = (text: string): Frame => ({ type: 'response.output_text.delta', delta: text });
  const bareThought = { type: 'reasoning', id: 'rs_1' };
  const sun = { ...message, content: [{ type: 'output_text', text: 'Sun.' }] };
  const rain = { ...sun, id: 'msg_2', content: [{ type: 'output_text', text: 'Rain.' }] };
  const no = { ...message, content: [{ type: 'refusal', refusal: 'Sun.' }] };

  test.each<[string, Frame[], { text?: string; calls?: number; stop?: string }]>([
    [
      'a text at the end of its part',
      [{ type: 'response.output_text.done', text: 'Sun.' }, completed([])],
      {},
    ],
    ['a text in its item', [done(sun), completed(null)], {}],
    ['a text in the response', [completed([sun])], {}],
    ['the end of a text', [delta('Su'), completed([sun])], {}],
    ['the second of two texts', [delta('Sun.'), done(sun), completed([sun, rain])], { text: 'Sun.Rain.' }],
    [
      'a text that all of them repeat',
      [delta('Sun.'), { type: 'response.output_text.done', text: 'Sun.' }, done(sun), completed([sun])],
      {},
    ],
    ['a refusal', [completed([no])], { stop: 'refusal' }],
    ['a call in the response', [delta('Sun.'), completed([sun, item])], { calls: 1 }],
    ['a call in its item', [delta('Sun.'), done(item), completed([])], { calls: 1 }],
    ['a call in both', [delta('Sun.'), done(item), completed([item])], { calls: 1 }],
    [
      'a second call',
      [delta('Sun.'), done(item), completed([item, { ...item, id: 'fc_2', call_id: 'a2' }])],
      { calls: 2 },
    ],
    [
      'a thought without a summary',
      [done({ ...bareThought, summary: null, content: null }), delta('Sun.'), completed([])],
      {},
    ],
    ['a thought without any field', [done(bareThought), delta('Sun.'), completed([])], {}],
  ])('reads %s', async (_, given, { text = 'Sun.', calls = 0, stop = calls > 0 ? 'calls' : 'end' }) => {
    frames = given;
    const events = await collectEvents(createOpenAi({ baseUrl: server.url, apiKey: 'k' }));
    expect(textOf(events)).toBe(text);
    expect(callsIn(events)).toHaveLength(calls);
    expect(events.at(-1)).toMatchObject({ type: 'done', stop });
  });
});
