import { expect, test } from 'vitest';
import { createAiSdk } from '../../src/providers/ai-sdk/ai-sdk.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelEvent, Provider } from '../../src/providers/provider.ts';
import {
  type FakeHandler,
  type FakeServer,
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
} from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { chatModel, claudeModel, responsesModel } from './ai-sdk-stage.ts';

const CALLS = [
  { id: 'k1', name: 'add', args: '{"a":1,"b":"ü 👍"}' },
  { id: 'k2', name: 'list', args: '{"of":"x"}' },
];

type Open = (handler: FakeHandler) => Promise<{ server: FakeServer; provider: Provider }>;

const over =
  (start: (handler: FakeHandler) => Promise<FakeServer>, make: (url: string) => Provider): Open =>
  async (handler) => {
    const server = await start(handler);
    return { server, provider: make(server.url) };
  };

const VENDORS: [string, Open][] = [
  ['anthropic', over(startFakeAnthropic, (baseUrl) => createAnthropic({ baseUrl, apiKey: 'k' }))],
  ['openai', over(startFakeOpenAiResponses, (baseUrl) => createOpenAi({ baseUrl, apiKey: 'k' }))],
  ['openai-compatible', over(startFakeOpenAi, (baseUrl) => createOpenAiCompatible({ baseUrl, apiKey: 'k' }))],
  ['ai-sdk with Claude', over(startFakeAnthropic, (url) => createAiSdk(claudeModel(url)))],
  ['ai-sdk with responses', over(startFakeOpenAiResponses, (url) => createAiSdk(responsesModel(url)))],
  ['ai-sdk with chat completions', over(startFakeOpenAi, (url) => createAiSdk(chatModel(url)))],
];

const piecesOf = (events: readonly ModelEvent[], id: string) =>
  events.flatMap((event) => (event.type === 'calling' && event.id === id ? [event] : []));
const textsOf = (events: readonly ModelEvent[]) =>
  events.flatMap((event) => (event.type === 'thinking' ? [event.delta] : []));

test.each(VENDORS)('%s tells the arguments of calls as they come', async (_, open) => {
  const { server, provider } = await open(() => ({ text: 'I will.', calls: CALLS, chunk: 4 }));
  await using _server = server;
  const events = await collectEvents(provider);
  for (const { id, name, args } of CALLS) {
    const pieces = piecesOf(events, id);
    expect(pieces.length, id).toBeGreaterThan(2);
    expect(new Set(pieces.map((piece) => piece.name))).toEqual(new Set([name]));
    expect(pieces.map(({ delta }) => delta).join('')).toBe(args);
    const whole = events.findIndex((event) => event.type === 'call' && event.call.id === id);
    expect(events.findLastIndex((event) => event.type === 'calling' && event.id === id)).toBeLessThan(whole);
  }
});

test.each(VENDORS)('%s tells the beginning of a call before its first word has come', async (_, open) => {
  const { server, provider } = await open(() => ({
    calls: CALLS.slice(0, 1),
    chunk: 4,
    breaks: { after: 1, how: 'hang' },
  }));
  await using _server = server;
  const controller = new AbortController();
  const events = await collectEvents(provider, sampleRequest(), {
    signal: controller.signal,
    onEvent: ({ type }) => type === 'calling' && controller.abort(),
  });
  expect(events.map(({ type }) => type)).toEqual(['start', 'calling', 'aborted']);
  expect(events[1]).toMatchObject({ id: 'k1', name: 'add' });
});

test.each(VENDORS.filter(([name]) => name !== 'ai-sdk with chat completions'))(
  '%s tells reasoning as it comes',
  async (_, open) => {
    const { server, provider } = await open(() => ({ reasoning: 'Let me think.', text: 'So.', chunk: 3 }));
    await using _server = server;
    const events = await collectEvents(provider);
    expect(textsOf(events).length).toBeGreaterThan(2);
    const [whole] = events.flatMap((event) => (event.type === 'reasoning' ? [event.reasoning.text] : []));
    expect(textsOf(events).join('')).toBe(whole);
    expect(whole).toBe('Let me think.');
  },
);

test.each(VENDORS)(
  '%s tells arguments with the marks that are meant, wherever they are cut',
  async (_, open) => {
    // A model that was shown an escaped mark writes it escaped.
    const args = JSON.stringify({ text: String.raw`a <\|im_start|> b <\|eot_id|>` });
    const { server, provider } = await open(() => ({ calls: [{ id: 'k1', name: 'add', args }], chunk: 3 }));
    await using _server = server;
    const events = await collectEvents(provider);
    const [whole] = events.flatMap((event) => (event.type === 'call' ? [event.call.args] : []));
    const told = piecesOf(events, 'k1').map(({ delta }) => delta);
    expect(told.join('')).toBe(whole);
    const isRestored = provider.capabilities.templateMarks?.includes('tokens') ?? false;
    expect(whole?.includes('<|im_start|>')).toBe(isRestored);
  },
);

const frames = (...chunks: object[]) => chunks.map((data) => `data: ${JSON.stringify(data)}\n\n`).join('');
const chunk = (call: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: finish }],
});

test('a call whose id comes late keeps the one that it was told with', async () => {
  const body = frames(
    chunk({ index: 0, function: { name: 'add', arguments: '{"a"' } }),
    chunk({ index: 0, id: 'late', function: { arguments: ':1}' } }),
    chunk({ index: 0, id: 'next', function: { name: 'add', arguments: '{}' } }, 'tool_calls'),
  );
  await using server = await startFakeOpenAi(() => ({
    raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body },
  }));
  const provider = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const events = await collectEvents(provider);
  expect(events.slice(1, -1)).toEqual([
    { type: 'calling', id: 'call_conf_ana_1_1_0', name: 'add', delta: '{"a"' },
    { type: 'calling', id: 'call_conf_ana_1_1_0', name: 'add', delta: ':1}' },
    { type: 'calling', id: 'next', name: 'add', delta: '{}' },
    { type: 'call', call: { id: 'call_conf_ana_1_1_0', name: 'add', args: '{"a":1}' } },
    { type: 'call', call: { id: 'next', name: 'add', args: '{}' } },
  ]);
});

test('of two calls with one id the first is told as it comes', async () => {
  const body = frames(
    chunk({ index: 0, id: 'same', function: { name: 'add', arguments: '{"a":1}' } }),
    chunk({ index: 1, id: 'same', function: { name: 'list', arguments: '{"b":2}' } }, 'tool_calls'),
  );
  await using server = await startFakeOpenAi(() => ({
    raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body },
  }));
  const provider = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' });
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(sampleRequest(), { signal: new AbortController().signal }))
    events.push(event);
  expect(piecesOf(events, 'same')).toEqual([{ type: 'calling', id: 'same', name: 'add', delta: '{"a":1}' }]);
  expect(events.filter(({ type }) => type === 'call')).toHaveLength(2);
});
