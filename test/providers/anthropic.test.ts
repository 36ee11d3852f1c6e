import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import type { PromptMessage, Reasoning } from '../../src/events/index.ts';
import {
  startFakeAnthropic,
  type FakeReply,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { ADD_TOOL, assistant, result, sentBody, system, user } from './sent.ts';

let server: FakeServer;
let reply: FakeReply = {};
const provider = () => createAnthropic({ baseUrl: `${server.url}/v1/`, apiKey: 'key' });

beforeAll(async () => {
  server = await startFakeAnthropic(() => reply);
});
afterAll(() => server.close());
beforeEach(() => {
  reply = { text: 'ok' };
});

type Sent = { role: string; content: Record<string, unknown>[] }[];
const text = (content: string) => ({ type: 'text', text: content });
const CACHED = { cache_control: { type: 'ephemeral' } };

/** The places of cache_control: `system.0`, `tools.0`, `messages.2.1`. */
function marksOf(body: Record<string, unknown>): string[] {
  const marks: string[] = [];
  for (const field of ['tools', 'system'] as const) {
    const blocks = (body[field] ?? []) as object[];
    for (const [i, block] of blocks.entries()) if ('cache_control' in block) marks.push(`${field}.${i}`);
  }
  for (const [i, { content }] of (body['messages'] as Sent).entries()) {
    for (const [j, block] of content.entries())
      if ('cache_control' in block) marks.push(`messages.${i}.${j}`);
  }
  return marks;
}

describe('what is sent', () => {
  test('roles alternate and results stand before text', async () => {
    const body = await sentBody(server, provider(), {
      model: 'claude-sonnet-5',
      messages: [
        system('rules'),
        system('persona'),
        user('one'),
        user('two'),
        assistant('I add.', [
          ['c1', '{"a":1}'],
          ['c.2', ''],
        ]),
        result('c1', '1'),
        user('hurry'),
        result('c.2', 'no', true),
      ],
      tools: [ADD_TOOL],
    });
    const renamed = expect.stringMatching(/^call_[0-9a-f]{32}$/);
    expect(body['system']).toEqual([text('rules'), text('persona')]);
    expect(body['messages']).toEqual([
      { role: 'user', content: [text('one'), text('two')] },
      {
        role: 'assistant',
        content: [
          text('I add.'),
          { type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } },
          { type: 'tool_use', id: renamed, name: 'add', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c1', content: '1' },
          { type: 'tool_result', tool_use_id: renamed, content: 'no', is_error: true },
          text('hurry'),
        ],
      },
    ]);
    const [, { content: uses }, { content: results }] = body['messages'] as [unknown, Sent[0], Sent[0]];
    expect(uses?.[2]?.['id']).toBe(results?.[1]?.['tool_use_id']);
    expect(body['tools']).toEqual([{ name: 'add', description: 'Adds.', input_schema: ADD_TOOL.parameters }]);
    expect(body['max_tokens']).toBe(100);
  });

  test('no text block is empty or blank', async () => {
    const messages = [
      system(' '),
      user('one'),
      assistant('  ', [['c1', '{}']]),
      result('c1', ''),
      user('\n'),
    ];
    const body = await sentBody(server, provider(), { messages, breakpoints: [4] });
    expect(body).not.toHaveProperty('system');
    expect(body['messages']).toEqual([
      { role: 'user', content: [text('one')] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'add', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', ...CACHED }] },
    ]);
  });

  test('lone surrogates are replaced also within call arguments', async () => {
    const body = await sentBody(server, provider(), {
      messages: [
        user('a\ud83d'),
        assistant('', [['c1', '{"a":"\\ud83d","b":["👍"]}']]),
        result('c1', '\udc00'),
      ],
    });
    expect(JSON.stringify(body)).not.toMatch(/\\ud[89a-f]/i);
    expect(JSON.stringify(body)).toContain('👍');
  });

  test('integers beyond 2^53 go back within call arguments with the digits that the model wrote', async () => {
    const body = await sentBody(server, provider(), {
      messages: [
        user('a'),
        assistant('', [['c1', '{"a":1917043659912705297,"b":[-9007199254740993]}']]),
        result('c1', 'ok'),
      ],
    });
    expect(JSON.stringify(body)).toContain('"input":{"a":1917043659912705297,"b":[-9007199254740993]}');
  });

  test('appending a message changes nothing before it', async () => {
    const before = [user('one'), assistant('', [['c1', '{}']]), result('c1', '1')];
    const first = (await sentBody(server, provider(), { messages: before }))['messages'] as Sent;
    const next = [...before, assistant('done'), user('two')];
    const second = (await sentBody(server, provider(), { messages: next }))['messages'] as Sent;
    expect(second.slice(0, first.length)).toEqual(first);
  });
});

describe('cache breakpoints', () => {
  const messages: PromptMessage[] = [system('rules'), user('u1')];
  for (let i = 2; i < 9; i += 1) messages.push(i % 2 === 0 ? assistant(`a${i}`) : user(`u${i}`));
  messages.push(user('last'));

  test('are not set if none are requested', async () => {
    expect(marksOf(await sentBody(server, provider(), { messages }))).toEqual([]);
  });

  test('end the tools, the system text and the named messages', async () => {
    const body = await sentBody(server, provider(), { messages, tools: [ADD_TOOL], breakpoints: [0, 3, 9] });
    expect(marksOf(body)).toEqual(['system.0', 'messages.2.0', 'messages.8.0']);
  });

  test('without a system message are at the last tool', async () => {
    const body = await sentBody(server, provider(), {
      messages: [user('x')],
      tools: [ADD_TOOL],
      breakpoints: [0],
    });
    expect(marksOf(body)).toEqual(['tools.0', 'messages.0.0']);
  });

  test('of more than four keep the end of the prefix and the latest', async () => {
    const body = await sentBody(server, provider(), { messages, breakpoints: [1, 2, 3, 5, 7, 9] });
    expect(marksOf(body)).toEqual(['system.0', 'messages.4.0', 'messages.6.0', 'messages.8.0']);
  });

  test('in a merged message are at the block of the named message', async () => {
    const merged = [
      user('one'),
      user('two'),
      assistant('x', [['c1', '{}']]),
      result('c1', '1'),
      user('three'),
    ];
    const body = await sentBody(server, provider(), { messages: merged, breakpoints: [0, 3] });
    expect(marksOf(body)).toEqual(['messages.0.0', 'messages.2.0']);
  });
});

describe('thinking', () => {
  const own: Reasoning = { text: 'hm', signature: 'sig', provider: 'anthropic', model: 'm' };
  const withReasoning = (reasoning: Reasoning): PromptMessage[] => [
    user('one'),
    { ...assistant('x', [['c1', '{}']]), reasoning } as PromptMessage,
    result('c1', '1'),
  ];
  const firstBlock = async (reasoning: Reasoning) => {
    const body = await sentBody(server, provider(), { messages: withReasoning(reasoning) });
    return (body['messages'] as Sent)[1]?.content[0];
  };

  test('goes back first, to the provider and model that signed it', async () => {
    expect(await firstBlock(own)).toEqual({ type: 'thinking', thinking: 'hm', signature: 'sig' });
  });

  test.each([{ model: 'other' }, { provider: 'openai-compatible' }])(
    'is dropped for another %o',
    async (other) => {
      expect(await firstBlock({ ...own, ...other })).toEqual(text('x'));
    },
  );

  test('several blocks, redacted ones too, come back unchanged', async () => {
    const blocks = [
      { type: 'thinking', thinking: 'a', signature: 's1' },
      { type: 'redacted_thinking', data: 'xyz' },
    ];
    const events = blocks.flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ]);
    const stop = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } };
    const body = [...events, stop]
      .map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
      .join('');
    reply = { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
    const found = (await collectEvents(provider())).find(({ type }) => type === 'reasoning');
    const reasoning = found?.type === 'reasoning' ? found.reasoning : own;
    expect(reasoning.text).toContain('a');
    reply = { text: 'ok' };
    const sent = await sentBody(server, provider(), { messages: withReasoning(reasoning) });
    expect((sent['messages'] as Sent)[1]?.content.slice(0, 2)).toEqual(blocks);
  });

  test('stands at its old place between text and calls', async () => {
    const thinking = (id: string) => ({ type: 'thinking', thinking: id, signature: `sig-${id}` });
    const said = [
      thinking('a'),
      { type: 'text', text: 'x' },
      thinking('b'),
      { type: 'tool_use', id: 'c1', name: 'add', input: {} },
      thinking('c'),
      { type: 'tool_use', id: 'c2', name: 'add', input: {} },
    ];
    const starts = said.map((content_block, index) => ({
      type: 'content_block_start',
      index,
      content_block,
    }));
    const stop = { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } };
    const body = [...starts, stop]
      .map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
      .join('');
    reply = { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
    const events = await collectEvents(provider());
    reply = { text: 'ok' };
    const [reasoning] = events.flatMap((event) => (event.type === 'reasoning' ? [event.reasoning] : []));
    const calls: [string, string][] = [
      ['c1', '{}'],
      ['c2', '{}'],
    ];
    const messages = [user('one'), { ...assistant('x', calls), reasoning } as PromptMessage];
    messages.push(result('c1', '1'), result('c2', '2'));
    const sent = await sentBody(server, provider(), { messages });
    expect((sent['messages'] as Sent)[1]?.content).toEqual(said);
  });

  test.each(['claude-opus-5-5', 'claude-fable-5-1', 'anthropic/claude-sonnet-5.5', 'claude-haiku-6'])(
    '%s, which refuses thinking whose prefix has changed, is asked to leave it out',
    async (model) => {
      const body = await sentBody(server, provider(), { model });
      expect(body['thinking']).toEqual({
        type: 'adaptive',
        block_binding: { prefix_mismatch_behavior: 'drop_block' },
      });
      expect(server.requests.at(-1)?.headers).toMatchObject({
        'anthropic-beta': 'thinking-binding-controls-2026-08-01',
      });
    },
  );

  test.each(['claude-opus-5', 'claude-sonnet-4-5', 'claude-fable-5', 'claude-3-7-sonnet', 'deepseek-flash'])(
    '%s, which knows no such thing, is not',
    async (model) => {
      expect(await sentBody(server, provider(), { model })).not.toHaveProperty('thinking');
      expect(server.requests.at(-1)?.headers).not.toHaveProperty('anthropic-beta');
    },
  );
});

describe('settings', () => {
  const withSettings = (fields: object) => createAnthropic({ baseUrl: server.url, apiKey: 'key', ...fields });
  const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, required: ['a'] };

  test('omitted settings are not sent', async () => {
    const body = await sentBody(server, provider(), {});
    for (const field of ['thinking', 'output_config', 'context_management'])
      expect(body).not.toHaveProperty(field);
    expect(server.requests.at(-1)?.headers).not.toHaveProperty('anthropic-beta');
  });

  test('thinking is adaptive or has a budget, which a shorter answer omits', async () => {
    const adaptive = await sentBody(server, withSettings({ thinking: 'adaptive' }), {});
    expect(adaptive['thinking']).toEqual({ type: 'adaptive' });
    const budget = withSettings({ thinking: 1024 });
    const long = await sentBody(server, budget, { maxOutputTokens: 2000 });
    expect(long['thinking']).toEqual({ type: 'enabled', budget_tokens: 1024 });
    expect(await sentBody(server, budget, { maxOutputTokens: 1024 })).not.toHaveProperty('thinking');
  });

  test('the reply schema is sent in the dialect of Anthropic, beside the effort', async () => {
    const body = await sentBody(server, withSettings({ effort: 'low' }), { replySchema: schema });
    expect(body['output_config']).toEqual({
      effort: 'low',
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { a: { type: 'integer', description: '{minimum: 1}' } },
          required: ['a'],
          additionalProperties: false,
        },
      },
    });
  });

  test('a schema that Anthropic does not support fails without a request and is not retried', async () => {
    const before = server.requests.length;
    const events = await collectEvents(provider(), sampleRequest({ replySchema: {} }));
    expect(events.at(-1)).toMatchObject({ error: { code: 'provider_invalid_request' } });
    expect(server.requests).toHaveLength(before);
  });
});

test.each(['pause_turn', 'model_context_window_exceeded'])(
  '%s is an answer cut short',
  async (stop_reason) => {
    const block = { type: 'tool_use', id: 't1', name: 'add', input: {} };
    const events = [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'so' } },
      { type: 'content_block_start', index: 1, content_block: block },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"a":' } },
      { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 1 } },
    ];
    const body = events.map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join('');
    reply = { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
    expect((await collectEvents(provider())).slice(1)).toMatchObject([
      { type: 'text', delta: 'so' },
      { type: 'calling', id: 't1', name: 'add', delta: '' },
      { type: 'calling', id: 't1', name: 'add', delta: '{"a":' },
      { type: 'done', stop: 'length' },
    ]);
  },
);
