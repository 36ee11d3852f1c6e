import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PromptMessage, Reasoning } from '../../src/events/index.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';
import {
  startFakeOpenAiResponses,
  type FakeReply,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { ADD_TOOL, assistant, result, sentBody, system, user } from './sent.ts';

let server: FakeServer;
let reply: FakeReply;
const provider = () => createOpenAi({ baseUrl: server.url, apiKey: 'sk-secret-9' });

beforeAll(async () => {
  server = await startFakeOpenAiResponses(() => reply);
});
afterAll(() => server.close());
beforeEach(() => {
  reply = { text: 'ok' };
});

type Named = { type: string; [key: string]: unknown };
function stream(...events: Named[]): FakeReply {
  const body = events.map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join('');
  return { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
}
const ended = (over: object = {}): Named => ({
  type: 'response.completed',
  response: { status: 'completed', output: [], error: null, ...over },
});
const failed = (code: string, message: string): Named => ({
  type: 'response.failed',
  response: { status: 'failed', output: [], error: { code, message } },
});
const item = (each: object): Named => ({ type: 'response.output_item.done', output_index: 0, item: each });
const call = (id: string, name = 'add') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: '{"a":1}',
  status: 'completed',
});
const thought = (id: string) => ({
  type: 'reasoning',
  id,
  summary: [{ type: 'summary_text', text: `about ${id}` }],
  encrypted_content: `enc-${id}`,
  status: 'completed',
});

describe('what is sent', () => {
  test('messages, calls and results are items, and nothing is stored', async () => {
    const body = await sentBody(server, provider(), {
      messages: [
        system('rules'),
        system('persona'),
        user('one'),
        assistant('I add.', [
          ['c1', '{"a":1}'],
          ['c2', '{"a":'],
        ]),
        result('c1', '1'),
        result('c2', 'no', true),
        system('mind the time'),
        user('two'),
      ],
      tools: [ADD_TOOL],
      cacheKey: 'tenant/'.repeat(40),
    });
    expect(body).toEqual({
      model: 'm',
      instructions: 'rules\n\npersona',
      input: [
        { type: 'message', role: 'user', content: 'one' },
        { type: 'message', role: 'assistant', content: 'I add.' },
        { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', name: 'add', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: '1' },
        { type: 'function_call_output', call_id: 'c2', output: 'no' },
        { type: 'message', role: 'developer', content: 'mind the time' },
        { type: 'message', role: 'user', content: 'two' },
      ],
      tools: [{ type: 'function', ...ADD_TOOL, strict: false }],
      include: ['reasoning.encrypted_content'],
      max_output_tokens: 100,
      prompt_cache_key: expect.stringMatching(/^[\w-]{43}$/),
      store: false,
      stream: true,
    });
  });

  test.each(['gpt-4.1-mini', 'gpt-4o', 'chatgpt-4o-latest', 'gpt-5-chat-latest'])(
    'encrypted reasoning is not requested from %s, which would refuse',
    async (model) => {
      expect(await sentBody(server, provider(), { model })).not.toHaveProperty('include');
    },
  );

  test('a schema for the reply is not strict', async () => {
    const schema = { type: 'object', properties: {} };
    const body = await sentBody(server, provider(), { replySchema: schema });
    expect(body['text']).toEqual({ format: { type: 'json_schema', name: 'reply', schema, strict: false } });
  });

  test('every item names its type, for servers that need it', async () => {
    const messages = [user('one'), assistant('I add.', [['c1', '{}']]), result('c1', '1'), system('now')];
    const { input } = await sentBody(server, provider(), { messages });
    expect((input as Named[]).map(({ type }) => type)).toEqual([
      'message',
      'message',
      'function_call',
      'function_call_output',
      'message',
    ]);
  });

  test('a long call id is renamed equally in call and result, and lone surrogates are replaced', async () => {
    const id = 'x'.repeat(80);
    const messages = [user('a\ud83d'), assistant('', [[id, '{}']]), result(id, '\udc00')];
    const { input } = await sentBody(server, provider(), { messages });
    const [said, called, answered] = input as { content: string; call_id: string; output: string }[];
    expect(said?.content).toBe('a\ufffd');
    expect(answered?.output).toBe('\ufffd');
    expect(called?.call_id).toBe(answered?.call_id);
    expect(called?.call_id.length).toBeLessThanOrEqual(64);
  });
});

describe('reasoning', () => {
  const own = { provider: 'openai', model: 'm' };
  async function reasoningOf(given: FakeReply): Promise<Reasoning | undefined> {
    reply = given;
    const found = (await collectEvents(provider())).find(({ type }) => type === 'reasoning');
    reply = { text: 'ok' };
    return found?.type === 'reasoning' ? found.reasoning : undefined;
  }
  async function sentBack(reasoning: Reasoning, model = 'm') {
    const step = assistant('I add.', [
      ['c1', '{"a":1}'],
      ['c2', '{"a":1}'],
    ]);
    const messages = [
      user('one'),
      { ...step, reasoning } as PromptMessage,
      result('c1', '1'),
      result('c2', '1'),
    ];
    const { input } = await sentBody(server, provider(), { messages, model });
    return input as Named[];
  }
  const message = { type: 'message', role: 'assistant', phase: 'commentary', content: [] };
  const step = stream(
    item(thought('r1')),
    item(message),
    item(call('c1')),
    item(thought('r2')),
    item(call('c2')),
    ended(),
  );

  test('goes back encrypted, each part before what it led to', async () => {
    const reasoning = await reasoningOf(step);
    expect(reasoning).toMatchObject({ ...own, text: 'about r1\n\nabout r2' });
    const input = await sentBack(reasoning as Reasoning);
    const { status: _, ...first } = thought('r1');
    expect(input[1]).toEqual(first);
    expect(input[2]).toEqual({ type: 'message', role: 'assistant', content: 'I add.', phase: 'commentary' });
    expect(input.map(({ type, id, call_id }) => id ?? call_id ?? type)).toEqual([
      'message',
      'r1',
      'message',
      'c1',
      'r2',
      'c2',
      'c1',
      'c2',
    ]);
  });

  test('goes to no other model or provider, and signatures of another kind are omitted', async () => {
    const reasoning = (await reasoningOf(step)) as Reasoning;
    for (const input of [
      await sentBack(reasoning, 'other'),
      await sentBack({ ...reasoning, provider: 'openai-compatible' }),
      await sentBack({ ...reasoning, signature: 'sig' }),
      await sentBack({ text: 'hm', ...own }),
    ]) {
      expect(JSON.stringify(input)).not.toMatch(/enc-|reasoning|phase/);
    }
  });

  test('without an encrypted form is kept for people only', async () => {
    const { encrypted_content: _, ...open } = thought('r1');
    const reasoning = await reasoningOf(stream(item(open), ended()));
    expect(reasoning).toEqual({ ...own, text: 'about r1' });
  });
});

describe('what the API does', () => {
  test.each([
    ['rate_limit_exceeded', 'Rate limit reached. Please try again in 1.3s.', 'provider_rate_limited', 1300],
    ['server_error', 'An error occurred.', 'provider_failed', undefined],
    ['server_is_overloaded', 'Try later.', 'provider_overloaded', undefined],
    [
      'context_length_exceeded',
      'Your input exceeds the context window of this model.',
      'context_overflow',
      undefined,
    ],
    ['insufficient_quota', 'You exceeded your current quota.', 'provider_quota', undefined],
    ['invalid_prompt', 'Your prompt was flagged.', 'provider_refused', undefined],
  ])('a response that failed with %s is a failure', async (code, message, kind, retryAfterMs) => {
    reply = stream({ type: 'response.output_text.delta', delta: 'so' }, failed(code, message));
    const events = await collectEvents(provider());
    expect(textOf(events)).toBe('so');
    expect(events.at(-1)).toEqual({
      type: 'failed',
      error: { code: kind, message, ...(retryAfterMs ? { retryAfterMs } : {}) },
    });
  });

  test('a response that ends unfinished is truncated, even after complete items', async () => {
    reply = stream(item(call('c1')));
    expect((await collectEvents(provider())).slice(1)).toMatchObject([
      { type: 'failed', error: { code: 'provider_truncated' } },
    ]);
  });

  test('a refusal is reported as one', async () => {
    reply = stream({ type: 'response.refusal.delta', delta: 'No.' }, ended());
    expect((await collectEvents(provider())).slice(1)).toMatchObject([
      { type: 'text', delta: 'No.' },
      { type: 'done', stop: 'refusal' },
    ]);
  });

  test('an unknown model is recognised also with status 400', async () => {
    const error = { message: "The requested model 'm' does not exist.", code: 'model_not_found', type: 'x' };
    reply = { raw: { status: 400, body: JSON.stringify({ error }) } };
    expect((await collectEvents(provider())).at(-1)).toMatchObject({
      error: { code: 'provider_model_unknown' },
    });
  });

  test('a key that the vendor repeats in an error is hidden', async () => {
    reply = { error: { code: 'provider_auth', message: 'bad key sk-secret-9' } };
    expect((await collectEvents(provider())).at(-1)).toMatchObject({
      error: { message: '401 bad key [key]' },
    });
  });
});
