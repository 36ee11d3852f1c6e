import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PromptMessage, Reasoning } from '../../src/events/index.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelRequest } from '../../src/providers/provider.ts';
import { createProvider } from '../../src/library/runtime/registry.ts';
import { ProviderSettings } from '../../src/providers/settings.ts';
import { type ChatQuirks, quirksOf, VENDOR_QUIRKS } from '../../src/providers/quirks.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { startFakeOpenAi, type FakeReply, type FakeServer } from '../../packages/testing/src/fake-vendors.ts';
import { ADD_TOOL, assistant, result, sentBody, system, user } from './sent.ts';

let server: FakeServer;
let reply: FakeReply;
beforeAll(async () => {
  server = await startFakeOpenAi(() => reply);
});
afterAll(() => server.close());
beforeEach(() => {
  reply = { text: 'ok' };
});

const SCHEMA = { type: 'object', properties: { a: { type: 'number' } } };
const LONG_ID = 'call_0123456789abcdef';
const reasoning: Reasoning = { text: 'hm', provider: 'openai-compatible', model: 'm' };
const CONVERSATION: PromptMessage[] = [
  system('rules'),
  user('one'),
  { ...assistant('', [[LONG_ID, '{"a":1}']]), reasoning } as PromptMessage,
  result(LONG_ID, '1'),
  user('hurry'),
  assistant('done'),
  user('two'),
];

/** The body that an adapter sends to a fake server which it takes for this vendor. */
function sentAs(host: string, over: Partial<ModelRequest> = {}, own: ChatQuirks = {}) {
  const quirks = quirksOf(`https://${host}/v1`, own);
  const provider = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k', quirks });
  return sentBody(server, provider, { messages: CONVERSATION, tools: [ADD_TOOL], ...over });
}
type Sent = Record<string, unknown>[];
const messagesOf = (body: Record<string, unknown>) => body['messages'] as Sent;
const KEY = /^[\w-]{43}$/;

test.each(Object.keys(VENDOR_QUIRKS))('the settings of %s are found by its host', (host) => {
  expect(quirksOf(`https://${host}/some/path`)).toEqual(VENDOR_QUIRKS[host]);
  expect(quirksOf(`https://${host}.evil.com/v1`)).toEqual({});
});

describe('an unknown server', () => {
  test('gets only the fields that all servers accept', async () => {
    const body = await sentAs('gpu.example', { replySchema: SCHEMA });
    expect(Object.keys(body).toSorted()).toEqual([
      'max_tokens',
      'messages',
      'model',
      'response_format',
      'stream',
      'stream_options',
      'tools',
    ]);
    expect(body['response_format']).toEqual({
      type: 'json_schema',
      json_schema: { name: 'reply', schema: SCHEMA, strict: false },
    });
    expect(messagesOf(body).map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'user',
      'assistant',
      'user',
    ]);
    expect(JSON.stringify(body)).not.toContain('hm');
  });
});

describe('OpenAI', () => {
  test('gets its own limit and a cache key that reveals nothing and fits its field', async () => {
    const body = await sentAs('api.openai.com', { cacheKey: 'tenant/'.repeat(40) });
    expect(body['prompt_cache_key']).toMatch(KEY);
    expect(body['max_completion_tokens']).toBe(100);
    expect(body).not.toHaveProperty('max_tokens');
  });

  test('is never sent the role developer', async () => {
    const body = await sentAs('api.openai.com', { messages: [system('a'), user('b'), system('c')] });
    expect(messagesOf(body).map(({ role }) => role)).toEqual(['system', 'user', 'system']);
  });
});

describe('OpenRouter', () => {
  test('gets the session, and reasoning goes back unchanged', async () => {
    const body = await sentAs('openrouter.ai');
    expect(body['session_id']).toMatch(KEY);
    expect(body).not.toHaveProperty('prompt_cache_key');
    expect(messagesOf(body)[2]).toMatchObject({ reasoning: 'hm' });
    expect(messagesOf(body)[5]).not.toHaveProperty('reasoning');
  });
});

describe('DeepSeek', () => {
  test('gets reasoning back with every answer, empty if there was none or another model wrote it', async () => {
    const body = await sentAs('api.deepseek.com');
    expect(messagesOf(body)[2]).toMatchObject({ reasoning_content: 'hm' });
    expect(messagesOf(body)[5]).toMatchObject({ reasoning_content: '' });
    const other = await sentAs('api.deepseek.com', { model: 'other' });
    expect(messagesOf(other)[2]).toMatchObject({ reasoning_content: '' });
    expect(messagesOf(body)[1]).not.toHaveProperty('reasoning_content');
  });

  test('is asked for a JSON object, with the schema in the prompt', async () => {
    const body = await sentAs('api.deepseek.com', { replySchema: SCHEMA });
    expect(body['response_format']).toEqual({ type: 'json_object' });
    const [first] = messagesOf(body);
    expect(first?.['content']).toMatch(/^rules\n\nAnswer with a JSON object/);
    expect(first?.['content']).toContain(JSON.stringify(SCHEMA));
  });
});

describe('Mistral', () => {
  test('gets call ids of nine letters and digits, equal in call and result; its own ids stay', async () => {
    const messages = [
      user('one'),
      assistant('', [
        [LONG_ID, '{}'],
        ['aB3xK9mP2', '{}'],
      ]),
      result(LONG_ID, '1'),
      result('aB3xK9mP2', '2'),
    ];
    const [, calls, first, second] = messagesOf(await sentAs('api.mistral.ai', { messages }));
    const made = calls?.['tool_calls'] as { id: string }[] | undefined;
    const ids = made?.map(({ id }) => id);
    expect(ids).toEqual([expect.stringMatching(/^[A-Za-z0-9]{9}$/), 'aB3xK9mP2']);
    expect([first?.['tool_call_id'], second?.['tool_call_id']]).toEqual(ids);
  });

  test('never gets a user message right after a result', async () => {
    const roles = messagesOf(await sentAs('api.mistral.ai')).map(({ role }) => role);
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'user']);
  });

  test('is not asked for usage, which it refuses and sends anyway', async () => {
    const body = await sentAs('api.mistral.ai');
    expect(body).not.toHaveProperty('stream_options');
    expect(body['prompt_cache_key']).toMatch(KEY);
  });

  test('may answer in parts that include its thinking', async () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'so' },
    ];
    const chunks = [
      { choices: [{ index: 0, delta: { content }, finish_reason: null }] },
      { choices: [{ index: 0, delta: { content: '!' }, finish_reason: 'stop' }] },
    ];
    const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
    reply = { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
    const events = await collectEvents(createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' }));
    expect(textOf(events)).toBe('so!');
    expect(events).toContainEqual({ type: 'reasoning', reasoning });
  });
});

describe('Groq', () => {
  test('gets the schema in words only, because it refuses one in a stream', async () => {
    const body = await sentAs('api.groq.com', { replySchema: SCHEMA, messages: [user('one')] });
    expect(body).not.toHaveProperty('response_format');
    expect(messagesOf(body)[0]?.['role']).toBe('system');
    expect(messagesOf(body)[0]?.['content']).toContain(JSON.stringify(SCHEMA));
    expect(body['max_completion_tokens']).toBe(100);
  });
});

test('both names of reasoning are read, and only one of them if both are sent', async () => {
  const read = async (delta: object) => {
    const chunk = { choices: [{ index: 0, delta, finish_reason: 'stop' }] };
    const body = `data: ${JSON.stringify(chunk)}\n\n`;
    reply = { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
    const events = await collectEvents(createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' }));
    return events.flatMap((event) => (event.type === 'reasoning' ? [event.reasoning.text] : []));
  };
  expect(await read({ reasoning: 'a' })).toEqual(['a']);
  expect(await read({ reasoning_content: 'a', reasoning: 'a' })).toEqual(['a']);
  expect(await read({ reasoning_content: '', reasoning: 'a' })).toEqual(['a']);
});

test('quirks in the agents file override those known for the host', async () => {
  const body = await sentAs('api.mistral.ai', {}, { streamUsage: true, cacheKeyField: null });
  expect(body).toHaveProperty('stream_options');
  expect(body).not.toHaveProperty('prompt_cache_key');
  const settings = ProviderSettings.parse({
    provider: 'openai-compatible',
    baseUrl: server.url,
    quirks: { mergeConsecutive: true, like: 'api.groq.com' },
  });
  const provider = await createProvider(settings, {
    env: {},
    clock: createFakeClock(),
    readScript: () => null,
    home: '',
  });
  const sent = await sentBody(server, provider, { messages: [user('one'), user('two')] });
  expect(sent['messages']).toEqual([{ role: 'user', content: 'one\n\ntwo' }]);
  expect(sent).toHaveProperty('max_completion_tokens');
});

test('an unknown quirk is refused', () => {
  const settings = { provider: 'openai-compatible', quirks: { streamUsages: true } };
  expect(ProviderSettings.safeParse(settings).success).toBe(false);
});
