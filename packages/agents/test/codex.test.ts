import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { ModelEvent, ModelRequest, Provider } from '../../../src/providers/provider.ts';
import { collectEvents, sampleRequest, textOf } from '../../testing/src/provider-conformance.ts';
import { createFakeClock } from '../../testing/src/fake-clock.ts';
import type { FakeReply, FakeRequest } from '../../testing/src/fake-vendors.ts';
import { CODEX_MODEL, NO_CODEX, startCodexStage, transcriptOf } from './codex-stage.ts';
import { ADD_TOOL, result, system, user } from '../../../test/providers/sent.ts';
import { untilHolds } from '../../../test/support/until-holds.ts';

const START = { kind: 'start' } as const;

/** Gives the replies one after another, and repeats the last one. */
function inTurn(...replies: FakeReply[]): () => FakeReply {
  let next = 0;
  return () => replies[Math.min(next++, replies.length - 1)] ?? {};
}

function ask(provider: Provider, over: Partial<ModelRequest>, onEvent?: (event: ModelEvent) => void) {
  return collectEvents(provider, sampleRequest({ model: CODEX_MODEL, ...over }), onEvent ? { onEvent } : {});
}

function doneOf(events: readonly ModelEvent[]) {
  const last = events.at(-1);
  assert.ok(last?.type === 'done', JSON.stringify(last));
  return last;
}

function markOf(events: readonly ModelEvent[]) {
  const { session } = doneOf(events);
  assert.ok(session);
  return session;
}

function callsOf(events: readonly ModelEvent[]) {
  return events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
}

function toolsOf({ body }: FakeRequest): Record<string, unknown>[] {
  return (body as { tools?: Record<string, unknown>[] }).tools ?? [];
}

const TWO_CALLS: FakeReply = {
  calls: [
    { name: 'add', args: '{"a":1}' },
    { name: 'list', args: '{"a":2}' },
  ],
};
const TOOLS = [ADD_TOOL, { ...ADD_TOOL, name: 'list' }];

describe.skipIf(NO_CODEX !== '')(`codex${NO_CODEX}`, () => {
  test('a request contains the instructions, the messages and our tools, and nothing from the program', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    const messages = [system('You are Ana.'), system('Be brief.'), user('Hello'), user('You there?')];
    await ask(stage.provider, { messages, tools: [ADD_TOOL], session: START });
    const [request] = stage.api.requests;
    assert.ok(request);
    expect(transcriptOf(request)).toBe('You are Ana.\n\nBe brief.\nHello\nYou there?');
    const offered = toolsOf(request).map(({ name, type }) => name ?? type);
    // Codex always offers its patch tool. A test below shows that it has no effect.
    expect(offered).toEqual(['apply_patch', 'add']);
    expect(toolsOf(request).at(-1)).toMatchObject({
      description: ADD_TOOL.description,
      parameters: ADD_TOOL.parameters,
    });
    expect(request.headers['authorization']).toBe('Bearer key-of-test');
    expect(request.body).toMatchObject({ model: CODEX_MODEL, store: false });
  });

  test('the reply schema is sent only with its own turn', async () => {
    await using stage = await startCodexStage(() => ({ text: '{"a":1}' }));
    const replySchema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] };
    const first = await ask(stage.provider, { replySchema, session: START });
    await ask(stage.provider, { session: { kind: 'resume', mark: markOf(first) } });
    const sent = stage.api.requests.map(({ body }) => (body as { text?: { format?: object } }).text?.format);
    expect(sent[0]).toMatchObject({ type: 'json_schema', schema: replySchema });
    expect(sent[1]).toBeUndefined();
  });

  test('calls of one answer come in one step on a resumed session, too', async () => {
    await using stage = await startCodexStage(
      inTurn({ text: 'one' }, TWO_CALLS, { text: 'two', usage: null }, { text: 'three' }),
    );
    const first = await ask(stage.provider, { tools: TOOLS, session: START });
    const provider = await stage.reopen();
    const resume = { kind: 'resume', mark: markOf(first) } as const;
    const asked = await ask(provider, { tools: TOOLS, messages: [user('go')], session: resume });
    const calls = callsOf(asked);
    expect(calls.map(({ name, args }) => `${name} ${args}`).toSorted()).toEqual([
      'add {"a":1}',
      'list {"a":2}',
    ]);
    const messages = calls.map(({ id, name }) => result(id, `result-of-${name}`));
    const ended = await ask(provider, { messages, session: { kind: 'continue' } });
    expect(textOf(ended)).toBe('two');
    expect(stage.requests()).toBe(3);
    // Codex reports the usage of the first answer only after its calls were answered.
    expect(doneOf(asked).usage.input + doneOf(ended).usage.input).toBe(12);
  });

  test('tools that a model calls from a program are still ours', async () => {
    const program = 'const r = await Promise.all([tools.add({a:1}), tools.list({a:2})]); text(r.join("+"))';
    const item = { type: 'custom_tool_call', id: 'ct_1', call_id: 'cc_1', name: 'exec', input: program };
    await using stage = await startCodexStage(inTurn(rawReply([item]), { text: 'done' }));
    const over = { model: 'gpt-6-luna', tools: TOOLS };
    const asked = await ask(stage.provider, { ...over, session: START });
    expect(doneOf(asked)).toMatchObject({ stop: 'calls', usage: { input: 3, output: 4 } });
    const messages = callsOf(asked).map(({ id, name }) => result(id, `result-of-${name}`));
    expect(messages).toHaveLength(2);
    const ended = await ask(stage.provider, { ...over, messages, session: { kind: 'continue' } });
    expect(textOf(ended)).toBe('done');
    expect(stage.transcript()).toContain('result-of-add+result-of-list');
  });

  test('Codex itself answers a call that it does not understand', async () => {
    const calls = [
      { name: 'nosuch', args: '{}' },
      { name: 'add', args: '{"a":' },
    ];
    await using stage = await startCodexStage(inTurn({ calls }, { text: 'sorry' }));
    const events = await ask(stage.provider, { tools: TOOLS, session: START });
    expect(events.map(({ type }) => type)).toEqual(['start', 'session', 'text', 'done']);
    expect(doneOf(events).usage.input).toBe(24);
    expect(stage.transcript()).toMatch(/unsupported call: nosuch[^]*failed to parse function arguments/);
  });

  test('an answer that breaks off after a complete call ends normally', async () => {
    const clock = createFakeClock();
    const calls = [{ name: 'add', args: '{"a":1}' }];
    const broken: FakeReply = { calls, chunk: 99, breaks: { after: 1, how: 'end' } };
    await using stage = await startCodexStage(inTurn(broken), { clock });
    const asking = ask(stage.provider, { tools: TOOLS, session: START });
    await (
      await stage.api.arrived()
    ).gone;
    await untilHolds(() => expect(clock.sleeping()).toBe(1));
    await clock.advance(10_000);
    const messages = callsOf(await asking).map(({ id }) => result(id, 'late'));
    expect(messages).toHaveLength(1);
    const ended = await ask(stage.provider, { messages, session: { kind: 'continue' } });
    expect(ended.at(-1)).toMatchObject({ type: 'failed', error: { code: 'provider_truncated' } });
  });

  test('a session is lost when its tools change', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    const first = await ask(stage.provider, { tools: [ADD_TOOL], session: START });
    const session = { kind: 'resume', mark: markOf(first) } as const;
    const events = await ask(stage.provider, { tools: TOOLS, session });
    expect(events.at(-1)).toMatchObject({ type: 'failed', error: { code: 'provider_session_lost' } });
    expect(stage.requests()).toBe(1);
  });

  test('new instructions apply from the next turn on', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    const first = await ask(stage.provider, { messages: [system('Old.'), user('one')], session: START });
    const resume = (text: string, events: ModelEvent[]) =>
      ask(stage.provider, {
        messages: [system(text), user('next')],
        session: { kind: 'resume', mark: markOf(events) },
      });
    await resume('Old.', await resume('New.', first));
    expect(
      stage.api.requests.map(({ body }) => transcriptOf({ body } as FakeRequest).split('\n')[0]),
    ).toEqual(['Old.', 'New.', 'Old.']);
    expect(stage.transcript()).toBe('Old.\none\nhi\nnext\nhi\nnext');
  });

  test('a session keeps its instructions if a request has none', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    const first = await ask(stage.provider, { messages: [system('Mine.'), user('one')], session: START });
    const resume = (provider: Provider, events: ModelEvent[]) =>
      ask(provider, { messages: [user('next')], session: { kind: 'resume', mark: markOf(events) } });
    const second = await resume(stage.provider, first);
    await resume(await stage.reopen(), second);
    expect(stage.transcript()).toBe('Mine.\none\nhi\nnext\nhi\nnext');
  });

  test('a compaction by Codex itself is reported', async () => {
    const usage = { input: 10_000_000, output: 5, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
    await using stage = await startCodexStage(
      inTurn({ text: 'one', usage }, { text: 'summary' }, { text: 'two' }),
    );
    const first = await ask(stage.provider, { messages: [user('say-1')], session: START });
    const session = { kind: 'resume', mark: markOf(first) } as const;
    const events = await ask(stage.provider, { messages: [user('say-2')], session });
    expect(events.map(({ type }) => type)).toContain('compacted');
    expect(textOf(events)).toBe('two');
    expect(stage.requests()).toBe(3);
  });

  test('the tools of Codex itself cannot touch anything', async () => {
    const patch = '*** Begin Patch\n*** Add File: hello.txt\n+hi\n*** End Patch\n';
    const item = { type: 'custom_tool_call', id: 'ct_1', call_id: 'cc_1', name: 'apply_patch', input: patch };
    const calls = [
      { name: 'shell_command', args: '{"command":"echo hi > hello.txt"}' },
      { name: 'exec_command', args: '{"cmd":"echo hi > hello.txt"}' },
      { name: 'request_user_input', args: '{"questions":[]}' },
    ];
    const replies = [rawReply([item]), { calls }, { text: 'done' }];
    await using stage = await startCodexStage(inTurn(...replies, ...replies), {
      sandbox: 'danger-full-access',
    });
    const first = await ask(stage.provider, { session: START });
    const provider = await stage.reopen();
    const session = { kind: 'resume', mark: markOf(first) } as const;
    expect(textOf(await ask(provider, { session }))).toBe('done');
    const sent = stage.transcript();
    expect(sent.split('No usable execution environment').length - 1).toBe(2);
    expect(sent.split('unsupported call').length - 1).toBe(6);
    expect(filesOf(join(stage.home, 'work'))).toEqual([]);
  });

  test('a granted shell works in its directory and sees only the named variables', async () => {
    vi.stubEnv('CANARY_OF_TEST', 'canary');
    const args = JSON.stringify({ cmd: 'env; pwd; echo hi > hello.txt', yield_time_ms: 10_000 });
    await using stage = await startCodexStage(
      inTurn({ calls: [{ name: 'exec_command', args }] }, { text: 'ok' }),
      {
        builtinTools: ['shell'],
        sandbox: 'danger-full-access',
        env: { GIVEN: 'given-value' },
      },
    );
    const events = await ask(stage.provider, { session: START });
    expect(textOf(events)).toBe('ok');
    expect(callsOf(events)).toEqual([]);
    const seen = stage.transcript();
    expect(seen).toContain('GIVEN=given-value');
    expect(seen).toContain(join(stage.home, 'work'));
    expect(seen).not.toContain('canary');
    expect(seen).not.toContain('key-of-test');
    expect(filesOf(join(stage.home, 'work'))).toEqual(['hello.txt']);
    vi.unstubAllEnvs();
  });

  test('a refused key fails at once, and is not repeated', async () => {
    const error = { code: 'provider_auth', message: 'Incorrect API key provided: key-of-test' } as const;
    await using stage = await startCodexStage(() => ({ error }));
    const events = await ask(stage.provider, { session: START });
    expect(events.at(-1)).toMatchObject({ type: 'failed', error: { code: 'provider_auth' } });
    expect(JSON.stringify(events)).not.toContain('key-of-test');
    expect(stage.requests()).toBe(1);
  });

  test('a server that does not listen is reported at once', async () => {
    await using stage = await startCodexStage(() => ({}));
    await stage.api.close();
    // By default Codex retries forever: this resolves only because it does not.
    const events = await ask(stage.provider, { session: START });
    expect(events.at(-1)).toMatchObject({ type: 'failed', error: { code: 'provider_unreachable' } });
  });

  test('a rate limit within the stream names the delay', async () => {
    const error = { code: 'rate_limit_exceeded', message: 'Please try again in 1.5s.' };
    const failed = { type: 'response.failed', response: { id: 'r', error } };
    await using stage = await startCodexStage(() => ({ raw: { status: 200, ...streamOf([failed]) } }));
    const events = await ask(stage.provider, { session: START });
    expect(events.at(-1)).toMatchObject({
      type: 'failed',
      error: { code: 'provider_rate_limited', retryAfterMs: 1500 },
    });
  });

  test('closing leaves no process, and no files outside its home', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    await ask(stage.provider, { session: START });
    expect(stage.pids()).toHaveLength(1);
    await stage.provider.close?.();
    expect(stage.pids()).toEqual([]);
    expect(readdirSync(stage.home).toSorted()).toEqual([expect.stringMatching(/^codex-/), 'work']);
  });

  test('a session that another process holds is lost', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    const session = { kind: 'resume', mark: markOf(await ask(stage.provider, { session: START })) } as const;
    const events = await ask(stage.open(), { session });
    expect(events.at(-1)).toMatchObject({ type: 'failed', error: { code: 'provider_session_lost' } });
  });

  test('the program ends when Troupe is killed', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    const settings = {
      home: stage.home,
      env: {},
      baseUrl: stage.api.url,
      builtinTools: [],
      sandbox: 'read-only',
    };
    const code = `
      const { createCodex } = await import(${JSON.stringify(import.meta.resolve('../src/codex/codex.ts'))});
      const { collectEvents } = await import(${JSON.stringify(import.meta.resolve('../../testing/src/provider-conformance.ts'))});
      await collectEvents(createCodex(${JSON.stringify(settings)}));
      process.kill(process.pid, 'SIGKILL');`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', code]);
    await once(child, 'close');
    expect(child.signalCode).toBe('SIGKILL');
    expect(stage.requests()).toBe(1);
    await untilHolds(() => expect(stage.pids()).toEqual([]));
  });

  test('one process serves many sessions at once', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi', delayMs: 5 }));
    const names = ['ana', 'ben', 'cleo', 'dan'];
    const all = await Promise.all(
      names.map((name) => ask(stage.provider, { cacheKey: name, messages: [user(name)], session: START })),
    );
    expect(new Set(all.map((events) => markOf(events).id)).size).toBe(4);
    expect(stage.pids()).toHaveLength(1);
    expect(stage.api.requests.map((request) => transcriptOf(request)).toSorted()).toEqual(names);
  });

  test('a summary leaves no files on the disk', async () => {
    await using stage = await startCodexStage(() => ({ text: 'hi' }));
    await ask(stage.provider, { trace: { ...sampleRequest().trace, purpose: 'compaction' } });
    const [codex = ''] = readdirSync(stage.home);
    expect(existsSync(join(stage.home, codex, 'sessions'))).toBe(false);
  });
});

/** A reply of items that the fake has no shorthand for. */
function rawReply(items: readonly object[]): FakeReply {
  const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
  const events = items.flatMap((item) => [
    { type: 'response.output_item.added', item },
    { type: 'response.output_item.done', item },
  ]);
  return {
    raw: {
      status: 200,
      ...streamOf([...events, { type: 'response.completed', response: { id: 'r', usage } }]),
    },
  };
}

function streamOf(events: readonly object[]) {
  const created = { type: 'response.created', response: { id: 'r' } };
  const body = [created, ...events].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return { headers: { 'content-type': 'text/event-stream' }, body };
}

function filesOf(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}
