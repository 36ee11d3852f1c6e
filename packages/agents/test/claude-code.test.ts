import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'vitest';
import { createClaudeCode } from '../src/claude-code/claude-code.ts';
import type { ModelEvent, ModelRequest, SessionMark } from '../../../src/providers/provider.ts';
import {
  collectEvents,
  endOf,
  failureOf,
  sampleRequest,
  textOf,
} from '../../testing/src/provider-conformance.ts';
import type { FakeReply } from '../../testing/src/fake-vendors.ts';
import { callsOf, changeOf, toolResult, user } from '../../testing/src/fake-sessions.ts';
import { childrenOf, HAS_CLAUDE_CODE, NO_CLAUDE_CODE, openStage, wordsOf } from './claude-code-stage.ts';
import { killProcesses } from '../../../test/providers/kill-processes.ts';

const ADD = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
};
/** A PNG of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function start(over: Partial<ModelRequest> = {}): ModelRequest {
  return sampleRequest({ session: { kind: 'start' }, ...over });
}

function resume(mark: SessionMark | undefined, over: Partial<ModelRequest> = {}): ModelRequest {
  assert.ok(mark);
  return sampleRequest({ messages: [user('and then?')], session: { kind: 'resume', mark }, ...over });
}

function markOf(events: readonly ModelEvent[]): SessionMark | undefined {
  return endOf(events).session;
}

describe.skipIf(!HAS_CLAUDE_CODE)(HAS_CLAUDE_CODE ? 'claude-code' : NO_CLAUDE_CODE, () => {
  test('Claude Code adds nothing to the prompt', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    await collectEvents(stage.provider, start({ tools: [ADD], maxOutputTokens: 4000 }));
    const body = stage.server.requests[0]?.body as Record<string, unknown>;
    assert.doesNotMatch(JSON.stringify(body), /system-reminder|CLAUDE\.md/);
    assert.deepEqual(body['tools'], [
      { name: 'mcp__troupe__add', description: 'Adds.', input_schema: ADD.parameters },
    ]);
    assert.equal(body['model'], 'm');
    assert.equal(body['max_tokens'], 4000);
    assert.equal((body['messages'] as unknown[]).length, 1);
    assert.equal(stage.server.requests.length, 1);
    assert.equal(stage.server.requests[0]?.headers['x-api-key'], 'key-of-test');
  });

  test('every message is a separate block of one user message', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    await collectEvents(stage.provider, start({ messages: [user('one'), user('two'), user('')] }));
    const [request = assert.fail()] = stage.server.requests;
    const { messages } = request.body as { messages: { content: { text: string }[] }[] };
    assert.deepEqual(
      messages.map(({ content }) => content.map(({ text }) => text)),
      [['one', 'two']],
    );
  });

  test('an image is shown once, before the words of its message', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    const image = { hash: 'f'.repeat(64), mediaType: 'image/png' } as const;
    const seen = { role: 'user' as const, content: 'see', images: [image], seqs: [2] };
    const messages = [user('one'), seen];
    const images = new Map([[image.hash, PIXEL]]);
    const first = await collectEvents(stage.provider, start({ messages, images }));
    await collectEvents(stage.provider, resume(markOf(first)));
    const sent = stage.server.requests.map(({ body }) => JSON.stringify(body));
    for (const body of sent) assert.equal(body.split(PIXEL).length - 1, 1);
    assert.match(sent[0] ?? '', /"one".*"image".*"see/);
  });

  test('it sees only the given variables', async () => {
    process.env['TROUPE_CANARY'] = 'canary-of-test';
    const replies: FakeReply[] = [
      { calls: [{ name: 'Bash', args: '{"command":"env; pwd"}' }] },
      { text: 'done' },
    ];
    await using stage = await openStage(() => replies.shift() ?? {}, {
      builtinTools: ['Bash'],
      env: { NAMED: 'named-of-test' },
    });
    const events = await collectEvents(stage.provider, start());
    assert.equal(endOf(events).stop, 'end');
    const result = JSON.stringify(stage.server.requests[1]?.body);
    assert.doesNotMatch(result, /canary-of-test/);
    assert.match(result, /NAMED=named-of-test/);
    assert.ok(result.includes(`HOME=${stage.home}`), result);
    delete process.env['TROUPE_CANARY'];
  });

  test('a call of its own tool is not reported, and the text after it belongs to the same answer', async () => {
    const usage = { input: 10, output: 2, cacheRead: 4, cacheWrite: 0, reasoning: 0 };
    const replies: FakeReply[] = [
      { text: 'I will look.', calls: [{ name: 'Read', args: '{"file_path":"/nowhere"}' }], usage },
      { text: 'It is gone.', usage },
    ];
    await using stage = await openStage(() => replies.shift() ?? {}, { builtinTools: ['Read'] });
    const events = await collectEvents(stage.provider, start({ tools: [ADD] }));
    assert.deepEqual(callsOf(events), []);
    assert.equal(textOf(events), 'I will look.\n\nIt is gone.');
    assert.deepEqual(endOf(events).usage, { ...usage, input: 20, output: 4, cacheRead: 8 });
  });

  test('Claude Code refuses a tool that is not offered, and the turn continues', async () => {
    const calls = [
      { name: 'nope', args: '{}' },
      { name: 'Bash', args: '{"command":"id"}' },
    ];
    const replies: FakeReply[] = [{ calls }, { text: 'sorry' }];
    await using stage = await openStage(() => replies.shift() ?? {});
    const events = await collectEvents(stage.provider, start({ tools: [ADD] }));
    assert.deepEqual(callsOf(events), []);
    assert.equal(textOf(events), 'sorry');
    assert.equal(
      wordsOf(stage.server.requests[1] ?? assert.fail()).split('No such tool available').length - 1,
      2,
    );
  });

  test('a call that Claude Code refuses beside one of ours does not block the turn', async () => {
    const calls = [
      { name: 'nope', args: '{}' },
      { name: 'add', args: '{"a":1}' },
    ];
    const replies: FakeReply[] = [{ calls }, { text: 'done' }];
    await using stage = await openStage(() => replies.shift() ?? {});
    const [call, ...others] = callsOf(await collectEvents(stage.provider, start({ tools: [ADD] })));
    assert.ok(call);
    assert.deepEqual(others, []);
    const messages = [{ ...toolResult(call.id, 'add', 'it broke'), failed: true }];
    const events = await collectEvents(
      stage.provider,
      sampleRequest({ tools: [ADD], messages, session: { kind: 'continue' } }),
    );
    assert.equal(textOf(events), 'done');
    const sent = JSON.stringify(stage.server.requests[1]?.body);
    assert.match(sent, /"content":"it broke","is_error":true/);
  });

  test('an answer cut at its limit ends the turn and leaves nothing behind', async () => {
    const replies: FakeReply[] = [{ text: 'first' }, { text: 'too long', stop: 'length' }];
    await using stage = await openStage(() => replies.shift() ?? { text: 'third' });
    const first = await collectEvents(stage.provider, start());
    const cut = await collectEvents(stage.provider, resume(markOf(first)));
    assert.equal(endOf(cut).stop, 'length');
    assert.equal(endOf(cut).session, undefined);
    const third = await collectEvents(stage.provider, resume(markOf(first), { messages: [user('again')] }));
    assert.equal(changeOf(third), 'rewound');
    const last = wordsOf(stage.server.requests.at(-1) ?? assert.fail());
    assert.match(last, /first\nagain$/);
  });

  test('a session that it has compacted is reported', async () => {
    const summary = '<analysis>a</analysis><summary>in short</summary>';
    const overflow: FakeReply = { error: { code: 'context_overflow' } };
    const replies: FakeReply[] = [
      { text: 'a1' },
      { text: 'a2' },
      { text: 'a3' },
      overflow,
      { text: summary },
      { text: 'a4' },
      { text: 'a5' },
    ];
    await using stage = await openStage(() => replies.shift() ?? {});
    let events = await collectEvents(stage.provider, start());
    for (let i = 0; i < 3; i += 1) events = await collectEvents(stage.provider, resume(markOf(events)));
    assert.deepEqual(
      events.map(({ type }) => type),
      ['start', 'session', 'compacted', 'text', 'done'],
    );
    assert.equal(textOf(events), 'a4');
    assert.match(wordsOf(stage.server.requests.at(-1) ?? assert.fail()), /in short/);
    await stage.reopen();
    const next = await collectEvents(stage.provider, resume(markOf(events), { messages: [user('say-5')] }));
    assert.equal(changeOf(next), 'resumed');
    assert.match(wordsOf(stage.server.requests.at(-1) ?? assert.fail()), /in short[^]*\na4\nsay-5$/);
  });

  test('an answer that breaks off is truncated, after the text received so far', async () => {
    const text = 'a long answer that is broken off';
    await using stage = await openStage(() => ({
      text,
      chunk: 4,
      // A reset connection drops what the program has not read yet.
      delayMs: 400,
      breaks: { after: 3, how: 'cut' },
    }));
    const events = await collectEvents(stage.provider, start());
    assert.equal(failureOf(events).code, 'provider_truncated');
    assert.ok(textOf(events) !== '' && text.startsWith(textOf(events)), textOf(events));
  });

  test('a request for another model is answered in the same session', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    const first = await collectEvents(stage.provider, start());
    const second = await collectEvents(stage.provider, resume(markOf(first), { model: 'n' }));
    assert.equal(changeOf(second), 'resumed');
    const [, request = assert.fail()] = stage.server.requests;
    const { model, messages } = request.body as { model: string; messages: unknown[] };
    assert.deepEqual([model, messages.length], ['n', 3]);
  });

  test('its answer is kept when it is killed right after it', async () => {
    await using stage = await openStage(() => ({ text: 'answer' }));
    const first = await collectEvents(stage.provider, start());
    await killProcesses(childrenOf());
    const second = await collectEvents(stage.provider, resume(markOf(first)));
    assert.equal(changeOf(second), 'resumed');
    assert.match(wordsOf(stage.server.requests[1] ?? assert.fail()), /Hello\nanswer\nand then\?$/);
  });

  test('a session without its instructions is lost', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    const first = await collectEvents(stage.provider, start());
    await stage.reopen();
    rmSync(path.join(stage.home, 'sessions'), { recursive: true });
    const second = await collectEvents(stage.provider, resume(markOf(first)));
    assert.equal(failureOf(second).code, 'provider_session_lost');
  });

  test('without a key its own login is used', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    const provider = createClaudeCode({
      home: stage.home,
      baseUrl: stage.server.url,
      env: { CLAUDE_CODE_OAUTH_TOKEN: 'login-of-test' },
      builtinTools: [],
    });
    assert.equal(textOf(await collectEvents(provider, start())), 'ok');
    assert.equal(stage.server.requests[0]?.headers['authorization'], 'Bearer login-of-test');
    await provider.close?.();
  });

  test('without a key and a login it is refused', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }));
    const provider = createClaudeCode({
      home: stage.home,
      baseUrl: stage.server.url,
      env: {},
      builtinTools: [],
    });
    assert.equal(failureOf(await collectEvents(provider, start())).code, 'provider_auth');
    await provider.close?.();
  });
});
