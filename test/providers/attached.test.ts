import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PromptMessage, Reasoning, ToolCall } from '../../src/events/index.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { type ChatQuirks, quirksOf } from '../../src/providers/quirks.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { collectEvents, sampleRequest, textOf } from '../../packages/testing/src/provider-conformance.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { ADD_TOOL, result, user } from './sent.ts';

type Fields = Record<string, unknown>;
const LONG = `call_1__thought__${'c2lnbmF0dXJl'.repeat(40)}`;
const VERY_LONG = `call_1__thought__${'c2lnbmF0dXJl'.repeat(400)}`;

/** One answer over real HTTP, and the request of the next step: the messages that it consists of. */
async function nextRequest(server: FakeServer, provider: Provider, model = 'm', next = provider) {
  const events = await collectEvents(provider, sampleRequest({ tools: [ADD_TOOL] }));
  const calls = events.flatMap((event): ToolCall[] => (event.type === 'call' ? [event.call] : []));
  const reasoning = events.find(
    (event): event is { type: 'reasoning'; reasoning: Reasoning } => event.type === 'reasoning',
  );
  // A log keeps the answer as text.
  const message = JSON.parse(
    JSON.stringify({
      role: 'assistant',
      content: textOf(events),
      calls,
      reasoning: reasoning?.reasoning,
      seqs: [],
    }),
  ) as PromptMessage;
  const results = calls.map(({ id }) => result(id, '1'));
  const messages = [user('one'), message, ...results];
  await collectEvents(next, sampleRequest({ model, messages, tools: [ADD_TOOL] }));
  expect(events.at(-1)).toMatchObject({ type: 'done', stop: 'calls' });
  return { events, body: server.requests.at(-1)?.body as Fields };
}

describe('chat completions', () => {
  let server: FakeServer;
  let chunks: unknown[];
  beforeAll(async () => {
    server = await startFakeOpenAi(() => ({
      raw: {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''),
      },
    }));
  });
  afterAll(() => server.close());

  const provider = (quirks: ChatQuirks = {}) =>
    createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k', quirks });
  const chunk = (delta: Fields, finish: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const made = { name: 'add', arguments: '{"a":1}' };
  const call = (more: Fields = {}) => ({ index: 0, id: 'a1', type: 'function', function: made, ...more });
  async function sentBack(deltas: Fields[], quirks?: ChatQuirks, model?: string) {
    chunks = [...deltas.map((delta) => chunk(delta)), chunk({}, 'tool_calls')];
    const { body } = await nextRequest(server, provider(quirks), model);
    const [, message, ...results] = body['messages'] as [
      Fields,
      Fields & { tool_calls: Fields[] },
      ...Fields[],
    ];
    return { message, calls: message.tool_calls, results };
  }
  const encrypted = {
    type: 'reasoning.encrypted',
    data: 'ZW5j',
    id: 'a1',
    format: 'google-gemini-v1',
    index: 0,
  };
  const pieceOf = (text: string, more = {}) => ({ type: 'reasoning.text', text, index: 0, ...more });

  test.each<[string, Fields[], Fields]>([
    [
      'Gemini: extra_content of a call',
      [{ tool_calls: [call({ extra_content: { google: { thought_signature: 'c2ln' } } })] }],
      { extra_content: { google: { thought_signature: 'c2ln' } } },
    ],
    [
      'Gemini: extra_content in a later fragment of the call',
      [
        { tool_calls: [call()] },
        { tool_calls: [{ index: 0, extra_content: { google: { thought_signature: 's' } } }] },
      ],
      { extra_content: { google: { thought_signature: 's' } } },
    ],
    [
      'LiteLLM: provider_specific_fields of a call',
      [{ tool_calls: [call({ provider_specific_fields: { thought_signature: 'c2ln' } })] }],
      { provider_specific_fields: { thought_signature: 'c2ln' } },
    ],
    [
      'a field of the function',
      [{ tool_calls: [call({ function: { ...made, thought_signature: 'c2ln' } })] }],
      { function: { ...made, thought_signature: 'c2ln' } },
    ],
    [
      'a field that nobody knows',
      [{ tool_calls: [call({ x_proof: [1, { b: 2 }] })] }],
      { x_proof: [1, { b: 2 }] },
    ],
  ])('a call goes back with what was attached: %s', async (_, deltas, more) => {
    const { calls } = await sentBack(deltas);
    expect(calls).toEqual([{ type: 'function', id: 'a1', function: made, ...more }]);
  });

  test.each<[string, Fields[], Fields]>([
    [
      'OpenRouter: encrypted details',
      [{ reasoning: 'Hm.', reasoning_details: [encrypted] }],
      { reasoning: 'Hm.', reasoning_details: [encrypted] },
    ],
    [
      'OpenRouter: details in pieces',
      [
        { reasoning_details: [pieceOf('Let me ')] },
        { reasoning_details: [pieceOf('look.')] },
        { reasoning_details: [pieceOf('', { signature: 's1' })] },
        { reasoning_details: [pieceOf('More.')] },
        { reasoning_details: [encrypted] },
      ],
      { reasoning_details: [pieceOf('Let me look.', { signature: 's1' }), pieceOf('More.'), encrypted] },
    ],
    [
      'LiteLLM: thinking blocks in pieces',
      [
        {
          reasoning_content: 'Let me look.',
          thinking_blocks: [{ type: 'thinking', thinking: 'Let me ', signature: null }],
        },
        { thinking_blocks: [{ type: 'thinking', thinking: 'look.', signature: null }] },
        { thinking_blocks: [{ type: 'thinking', thinking: '', signature: 's1' }] },
      ],
      {
        reasoning_content: 'Let me look.',
        thinking_blocks: [{ type: 'thinking', thinking: 'Let me look.', signature: 's1' }],
      },
    ],
    [
      'LiteLLM: fields of the message',
      [{ provider_specific_fields: { thought_signatures: ['s'] } }],
      { provider_specific_fields: { thought_signatures: ['s'] } },
    ],
    [
      'Gemini: extra_content of the message',
      [{ extra_content: { google: { thought_signature: 's' } } }],
      { extra_content: { google: { thought_signature: 's' } } },
    ],
    [
      'Copilot: opaque reasoning',
      [{ reasoning_text: 'Hm.', reasoning_opaque: 'b3A=' }],
      { reasoning_text: 'Hm.', reasoning_opaque: 'b3A=' },
    ],
    [
      'Kimi, GLM, vLLM: reasoning_content',
      [{ reasoning_content: 'Let me ' }, { reasoning_content: 'look.' }],
      { reasoning_content: 'Let me look.' },
    ],
    ['Ollama, gpt-oss: reasoning', [{ reasoning: 'Hm.' }], { reasoning: 'Hm.' }],
  ])('a message goes back with what was attached: %s', async (_, deltas, more) => {
    const { message } = await sentBack([...deltas, { tool_calls: [call()] }]);
    expect(message).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [{ type: 'function', id: 'a1', function: made }],
      ...more,
    });
  });

  test('each of several calls keeps its own', async () => {
    const second = call({ index: 1, id: 'a2' });
    const { calls } = await sentBack([
      { tool_calls: [call({ extra_content: { s: 1 } }), second] },
      { tool_calls: [call({ index: 2, id: 'a3', extra_content: { s: 3 } })] },
    ]);
    expect(calls.map(({ id, extra_content: given }) => [id, given])).toEqual([
      ['a1', { s: 1 }],
      ['a2', undefined],
      ['a3', { s: 3 }],
    ]);
  });

  test('a whole answer without a stream keeps its own too', async () => {
    chunks = [
      {
        choices: [
          {
            message: { reasoning_details: [encrypted], tool_calls: [call({ extra_content: { s: 1 } })] },
            finish_reason: 'tool_calls',
          },
        ],
      },
    ];
    const { body } = await nextRequest(server, provider());
    const [, message] = body['messages'] as Fields[];
    expect(message).toMatchObject({
      reasoning_details: [encrypted],
      tool_calls: [{ extra_content: { s: 1 } }],
    });
  });

  test.each([
    ['a thought signature', LONG],
    ['one of several kilobytes', VERY_LONG],
    ["Kimi's form", 'functions.add:0'],
    ['signs of any kind', 'a/b=c d+é'],
  ])('the id of a call goes back unchanged: %s', async (_, id) => {
    const { calls, results } = await sentBack([{ tool_calls: [call({ id })] }]);
    expect(calls[0]?.['id']).toBe(id);
    expect(results).toMatchObject([{ role: 'tool', tool_call_id: id }]);
  });

  test.each([
    ['OpenAI takes 40 signs', 'https://api.openai.com/v1', 40],
    ['so does Azure', 'https://mine.openai.azure.com/openai/v1', 40],
    ['Mistral takes nine', 'https://api.mistral.ai/v1', 9],
  ])('%s of an id', async (_, url, most) => {
    const { calls, results } = await sentBack([{ tool_calls: [call({ id: LONG })] }], quirksOf(url));
    expect(String(calls[0]?.['id']).length).toBeLessThanOrEqual(most);
    expect(results).toMatchObject([{ tool_call_id: calls[0]?.['id'] }]);
  });

  test('another model gets nothing of it', async () => {
    const { message } = await sentBack(
      [
        {
          reasoning_content: 'Hm.',
          reasoning_details: [encrypted],
          tool_calls: [call({ extra_content: { s: 1 } })],
        },
      ],
      {},
      'other',
    );
    expect(message).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [{ type: 'function', id: 'a1', function: made }],
    });
  });

  test('Gemini 3 gets its own mark with calls that it has not signed, and no other model does', async () => {
    const quirks = quirksOf('https://generativelanguage.googleapis.com/v1beta/openai');
    const signed = { google: { thought_signature: 'c2ln' } };
    const both = [call({ extra_content: signed }), call({ index: 1, id: 'a2' })];
    const own = await sentBack([{ tool_calls: both }], quirks);
    expect(own.calls.map(({ extra_content: given }) => given)).toEqual([signed, undefined]);
    const skipped = { google: { thought_signature: 'skip_thought_signature_validator' } };
    const other = await sentBack([{ tool_calls: both }], quirks, 'gemini-3-flash');
    expect(other.calls.map(({ extra_content: given }) => given)).toEqual([skipped, undefined]);
    const older = await sentBack([{ tool_calls: both }], quirks, 'gemini-2.5-flash');
    expect(older.calls.map(({ extra_content: given }) => given)).toEqual([undefined, undefined]);
  });

  test('a call that is made again, after a person has approved it, has what came with it', async () => {
    chunks = [
      chunk({ tool_calls: [call({ id: VERY_LONG, extra_content: { s: 1 } })] }),
      chunk({}, 'tool_calls'),
    ];
    const { events } = await nextRequest(server, provider());
    const reasoning = events.flatMap((event) => (event.type === 'reasoning' ? [event.reasoning] : []));
    const calls = events.flatMap((event): ToolCall[] => (event.type === 'call' ? [event.call] : []));
    const id = calls[0]?.id ?? '';
    const first: PromptMessage = { role: 'assistant', content: '', calls, reasoning: reasoning[0], seqs: [] };
    const again: PromptMessage = { role: 'assistant', content: '', calls, seqs: [] };
    const messages = [user('one'), first, result(id, 'waits'), user('approved'), again, result(id, '1')];
    await collectEvents(provider(), sampleRequest({ messages }));
    const body = server.requests.at(-1)?.body as {
      messages: { tool_calls?: Fields[]; tool_call_id?: string }[];
    };
    const sent = body.messages.flatMap((each) => each.tool_calls ?? []);
    expect(sent).toMatchObject([
      { id: VERY_LONG, extra_content: { s: 1 } },
      { id: VERY_LONG, extra_content: { s: 1 } },
    ]);
    expect(body.messages.at(-1)?.tool_call_id).toBe(VERY_LONG);
  });

  test('Groq, which refuses reasoning in messages, gets none', async () => {
    const { message } = await sentBack(
      [{ reasoning: 'Hm.', tool_calls: [call()] }],
      quirksOf('https://api.groq.com/openai/v1'),
    );
    expect(JSON.stringify(message)).not.toContain('Hm.');
  });

  test.each(['api.moonshot.ai', 'api.moonshot.cn'])(
    '%s gets reasoning with every answer, empty if another model wrote it',
    async (host) => {
      const quirks = quirksOf(`https://${host}/v1`);
      const own = await sentBack([{ reasoning_content: 'Hm.', tool_calls: [call()] }], quirks);
      expect(own.message).toMatchObject({ reasoning_content: 'Hm.' });
      const other = await sentBack([{ reasoning_content: 'Hm.', tool_calls: [call()] }], quirks, 'other');
      expect(other.message).toMatchObject({ reasoning_content: '' });
    },
  );

  test('what is attached counts among the reasoning that an answer may have', async () => {
    chunks = [chunk({ tool_calls: [call({ extra_content: 'x'.repeat(5000) })] }), chunk({}, 'tool_calls')];
    const bounded = createOpenAiCompatible({
      baseUrl: server.url,
      apiKey: 'k',
      replyLimits: { reasoningBytes: 1024 },
    });
    expect((await collectEvents(bounded)).at(-1)).toMatchObject({
      error: { code: 'provider_reply_too_long' },
    });
  });
});

describe('responses', () => {
  let server: FakeServer;
  let items: Fields[];
  beforeAll(async () => {
    server = await startFakeOpenAiResponses(() => ({
      raw: {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: `data: ${JSON.stringify({ type: 'response.completed', response: { status: 'completed', output: items } })}\n\n`,
      },
    }));
  });
  afterAll(() => server.close());
  const call = { type: 'function_call', call_id: LONG.slice(0, 200), name: 'add', arguments: '{"a":1}' };

  test('a server that resembles OpenAI gets its thoughts, ids and attachments back', async () => {
    const thought = {
      type: 'reasoning',
      id: 'rs_1',
      summary: [],
      content: [{ type: 'reasoning_text', text: 'Hm.' }],
    };
    items = [thought, { ...call, provider_specific_fields: { thought_signature: 's' } }];
    const { body } = await nextRequest(server, createOpenAi({ baseUrl: server.url, apiKey: 'k' }));
    const [, ...input] = body['input'] as Fields[];
    expect(input).toEqual([
      thought,
      { ...call, provider_specific_fields: { thought_signature: 's' } },
      { type: 'function_call_output', call_id: call.call_id, output: '1' },
    ]);
  });
});

describe('messages', () => {
  let server: FakeServer;
  let content: Fields[];
  beforeAll(async () => {
    server = await startFakeAnthropic(() => ({
      raw: {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'message', content, stop_reason: 'tool_use', usage: {} }),
      },
    }));
  });
  afterAll(() => server.close());
  const provider = () => createAnthropic({ baseUrl: server.url, apiKey: 'k' });

  test('a server that resembles Anthropic gets unsigned thoughts and its own ids back', async () => {
    content = [
      { type: 'thinking', thinking: 'Hm.', signature: '' },
      { type: 'tool_use', id: 'functions.add:0', name: 'add', input: { a: 1 } },
    ];
    const { body } = await nextRequest(server, provider());
    const [, message, results] = body['messages'] as Fields[];
    expect(message).toEqual({ role: 'assistant', content });
    expect(results).toMatchObject({ content: [{ type: 'tool_result', tool_use_id: 'functions.add:0' }] });
  });

  test('Claude gets ids that it takes, at whichever server', async () => {
    content = [{ type: 'tool_use', id: 'functions.add:0', name: 'add', input: { a: 1 } }];
    const { body } = await nextRequest(server, provider(), 'claude-sonnet-5');
    expect(JSON.stringify(body['messages'])).not.toContain('functions.add:0');
  });
});
