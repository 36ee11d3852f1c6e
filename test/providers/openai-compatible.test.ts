import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { startFakeOpenAi, type FakeReply, type FakeServer } from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';
import { ADD_TOOL, assistant, result, sentBody, system, user } from './sent.ts';

let server: FakeServer;
let reply: FakeReply = {};
const provider = (quirks = {}) =>
  createOpenAiCompatible({ baseUrl: server.url, apiKey: 'sk-secret-9', quirks });

beforeAll(async () => {
  server = await startFakeOpenAi(() => reply);
});
afterAll(() => server.close());
beforeEach(() => {
  reply = { text: 'ok' };
});

function frames(...chunks: unknown[]): FakeReply {
  const body = chunks.map(
    (chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`,
  );
  return { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body: body.join('') } };
}
const chunk = (delta: unknown, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

describe('what is sent', () => {
  test('messages keep their number, order and roles', async () => {
    const body = await sentBody(server, provider(), {
      messages: [
        system('rules'),
        user('one'),
        user('two'),
        assistant('', [
          ['c1', '{"a":1}'],
          ['c2', '{"a":2}'],
        ]),
        result('c1', '1'),
        result('c2', '2'),
      ],
      tools: [ADD_TOOL],
    });
    const call = (id: string, args: string) => ({
      type: 'function',
      id,
      function: { name: 'add', arguments: args },
    });
    expect(body['messages']).toEqual([
      { role: 'system', content: 'rules' },
      { role: 'user', content: 'one' },
      { role: 'user', content: 'two' },
      { role: 'assistant', content: null, tool_calls: [call('c1', '{"a":1}'), call('c2', '{"a":2}')] },
      { role: 'tool', tool_call_id: 'c1', content: '1' },
      { role: 'tool', tool_call_id: 'c2', content: '2' },
    ]);
    expect(body['tools']).toEqual([{ type: 'function', function: ADD_TOOL }]);
  });

  test('a server gets max_tokens, is asked for usage, and gets no field that only OpenAI knows', async () => {
    const body = await sentBody(server, provider(), {});
    expect(Object.keys(body).toSorted()).toEqual([
      'max_tokens',
      'messages',
      'model',
      'stream',
      'stream_options',
    ]);
    expect(body['stream_options']).toEqual({ include_usage: true });
    expect(server.requests.at(-1)?.headers).toMatchObject({ authorization: 'Bearer sk-secret-9' });
    expect(server.requests.at(-1)?.headers).not.toHaveProperty('openai-organization');
  });

  test('consecutive user messages are merged only with the quirk', async () => {
    const messages = [user('one'), user('two'), assistant('x'), user('three')];
    const body = await sentBody(server, provider({ mergeConsecutive: true }), { messages });
    expect(body['messages']).toEqual([
      { role: 'user', content: 'one\n\ntwo' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: 'three' },
    ]);
  });

  test('lone surrogates are replaced and pairs are kept', async () => {
    const body = await sentBody(server, provider(), { messages: [user('a\ud83d b 👍 \udc00c')] });
    expect(body['messages']).toEqual([{ role: 'user', content: 'a\ufffd b 👍 \ufffdc' }]);
  });

  test('a long call id of another model is renamed equally in call and result', async () => {
    const id = `call_${'x'.repeat(80)}`;
    const body = await sentBody(server, provider(), {
      messages: [user('one'), assistant('', [[id, '{}']]), result(id, '1')],
    });
    const [, call, answer] = body['messages'] as [
      unknown,
      { tool_calls: { id: string }[] },
      { tool_call_id: string },
    ];
    expect(call.tool_calls[0]?.id).toBe(answer.tool_call_id);
    expect(answer.tool_call_id.length).toBeLessThanOrEqual(40);
  });

  test('invalid JSON arguments and unusable tool names are made acceptable', async () => {
    const bad = { id: 'c1', name: 'functions.add now', args: '{"a":' };
    const body = await sentBody(server, provider(), {
      messages: [
        user('one'),
        { role: 'assistant', content: 'x', calls: [bad], seqs: [] },
        result('c1', 'no'),
      ],
    });
    expect(body['messages']).toMatchObject([
      {},
      { content: 'x', tool_calls: [{ function: { name: 'functions_add_now', arguments: '{}' } }] },
      {},
    ]);
  });

  test('reasoning is never sent back', async () => {
    const reasoning = { text: 'secret', signature: 's', provider: 'openai-compatible', model: 'm' };
    const messages = [
      user('one'),
      { ...assistant('x'), reasoning } as ReturnType<typeof assistant>,
      user('two'),
    ];
    expect(JSON.stringify(await sentBody(server, provider(), { messages }))).not.toContain('secret');
  });
});

describe('what servers do', () => {
  test('parallel calls that all have the number 0 are distinguished', async () => {
    const call = (id: string) => ({ index: 0, id, function: { name: 'add', arguments: `{"a":"${id}"}` } });
    reply = frames(
      chunk({ tool_calls: [call('x')] }),
      chunk({ tool_calls: [call('y')] }),
      chunk({}, 'stop'),
      '[DONE]',
    );
    const events = await collectEvents(provider());
    expect(events.slice(1)).toMatchObject([
      { type: 'calling', id: 'x', name: 'add', delta: '{"a":"x"}' },
      { type: 'calling', id: 'y', name: 'add', delta: '{"a":"y"}' },
      { type: 'call', call: { id: 'x', args: '{"a":"x"}' } },
      { type: 'call', call: { id: 'y', args: '{"a":"y"}' } },
      { type: 'done', stop: 'calls' },
    ]);
  });

  test('calls without an id get one that is the same when the step is repeated', async () => {
    const call = { index: 0, function: { name: 'add', arguments: '{}' } };
    reply = frames(chunk({ tool_calls: [call] }), chunk({}, 'tool_calls'), '[DONE]');
    expect(await collectEvents(provider())).toContainEqual({
      type: 'call',
      call: { id: 'call_conf_ana_1_1_0', name: 'add', args: '{}' },
    });
  });

  test('an answer without [DONE] and usage is complete once it has a finish reason', async () => {
    reply = frames(chunk({ content: 'all' }), chunk({}, 'stop'));
    const events = await collectEvents(provider());
    expect(textOf(events)).toBe('all');
    expect(events.at(-1)).toMatchObject({ type: 'done', stop: 'end', usage: { input: 0, output: 0 } });
  });

  test('an error in a chunk fails the call with its code', async () => {
    reply = frames(chunk({ content: 'a' }), { error: { message: 'busy', type: 'overloaded_error' } });
    expect((await collectEvents(provider())).at(-1)).toMatchObject({
      error: { code: 'provider_overloaded' },
    });
  });

  test('a chunk that is not JSON fails the call', async () => {
    reply = frames(chunk({ content: 'a' }), '{"choices": [');
    expect((await collectEvents(provider())).at(-1)).toMatchObject({ error: { code: 'provider_failed' } });
  });

  test('a page that is not an API is reported as a wrong base URL', async () => {
    const lost = createOpenAiCompatible({ baseUrl: server.url.replace('/v1', '/api'), apiKey: 'k' });
    expect((await collectEvents(lost)).at(-1)).toMatchObject({
      error: { code: 'provider_invalid_request', message: expect.stringContaining('base URL') },
    });
  });

  test('a key that a server repeats in its error is hidden', async () => {
    reply = { error: { code: 'provider_auth', message: 'bad key sk-secret-9' } };
    const [, last] = await collectEvents(provider());
    expect(last).toMatchObject({ error: { message: '401 bad key [key]' } });
  });

  test('a refusal counts, even if the connection is lost before its words are here', async () => {
    const cutting = createServer((_, outgoing) => {
      outgoing.writeHead(401, { 'content-length': '100' });
      outgoing.write('{"error"', () => setImmediate(() => outgoing.destroy()));
    });
    await new Promise<void>((resolve) => cutting.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(cutting.address() as AddressInfo).port}/v1`;
    expect((await collectEvents(createOpenAiCompatible({ baseUrl, apiKey: 'k' }))).at(-1)).toEqual({
      type: 'failed',
      error: { code: 'provider_auth', message: '401 terminated' },
    });
    cutting.close();
  });

  test('a silent server times out', async () => {
    const impatient = createOpenAiCompatible({
      baseUrl: server.url,
      apiKey: 'k',
      replyLimits: { silenceMs: 200 },
    });
    reply = { text: 'abc', chunk: 1, breaks: { after: 1, how: 'hang' } };
    expect((await collectEvents(impatient)).at(-1)).toMatchObject({ error: { code: 'provider_truncated' } });
    reply = { hang: true };
    expect((await collectEvents(impatient)).at(-1)).toMatchObject({
      error: { code: 'provider_unreachable' },
    });
  });
});
