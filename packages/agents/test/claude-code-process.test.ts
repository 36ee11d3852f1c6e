import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, test, vi } from 'vitest';
import type { ClaudeCodeOptions } from '../src/claude-code/claude-code.ts';
import { PEERS_ENV } from '../src/programs.ts';
import type { ModelEvent, ModelFailure, ModelRequest } from '../../../src/providers/provider.ts';
import {
  collectEvents,
  endOf,
  failureOf,
  sampleRequest,
  textOf,
} from '../../testing/src/provider-conformance.ts';
import { createFakeClock } from '../../testing/src/fake-clock.ts';
import type { FakeReply } from '../../testing/src/fake-vendors.ts';
import { callsOf, changeOf, toolResult, user } from '../../testing/src/fake-sessions.ts';
import {
  type ClaudeCodeStage,
  childrenOf,
  CLIS,
  HAS_CLAUDE_CODE,
  NO_CLAUDE_CODE,
  openStage,
} from './claude-code-stage.ts';

const HANGING: FakeReply = { text: 'a long answer', chunk: 4, breaks: { after: 2, how: 'hang' } };

function start(cacheKey: string, over: Partial<ModelRequest> = {}): ModelRequest {
  return sampleRequest({ cacheKey, session: { kind: 'start' }, ...over });
}

async function resume(stage: ClaudeCodeStage, cacheKey: string, last: readonly ModelEvent[]) {
  const { session: mark } = endOf(last);
  assert.ok(mark);
  const request = { cacheKey, messages: [user('and then?')], session: { kind: 'resume', mark } as const };
  return await collectEvents(stage.provider, sampleRequest(request));
}

async function noneLeft(): Promise<void> {
  while (childrenOf().length > 0) await new Promise((resolve) => setImmediate(resolve));
}

describe.skipIf(!HAS_CLAUDE_CODE)(HAS_CLAUDE_CODE ? 'claude-code' : NO_CLAUDE_CODE, () => {
  test('closing leaves no process behind, even one that hangs', async () => {
    const calling: FakeReply = { calls: [{ name: 'add', args: '{}' }] };
    const replies: FakeReply[] = [{ text: 'ok' }, calling, HANGING];
    await using stage = await openStage(() => replies.shift() ?? {});
    await collectEvents(stage.provider, start('idle'));
    await collectEvents(
      stage.provider,
      start('waiting', { tools: [{ name: 'add', description: '', parameters: {} }] }),
    );
    const hanging = collectEvents(stage.provider, start('within'));
    await stage.server.arrived(3);
    assert.equal(childrenOf().length, 3);
    await stage.provider.close?.();
    assert.deepEqual(childrenOf(), []);
    assert.equal((await hanging).at(-1)?.type, 'failed');
    assert.equal(failureOf(await collectEvents(stage.provider, start('late'))).code, 'provider_unusable');
    assert.deepEqual(childrenOf(), []);
  });

  test('an unused session gives up its process and is resumed by another', async () => {
    const clock = createFakeClock();
    await using stage = await openStage(() => ({ text: 'ok' }), { clock, idleMs: 1000 });
    const first = await collectEvents(stage.provider, start('a'));
    await clock.advance(999);
    assert.equal(childrenOf().length, 1);
    const second = await resume(stage, 'a', first);
    assert.equal(changeOf(second), 'warm');
    await clock.advance(999);
    assert.equal(childrenOf().length, 1);
    await clock.advance(1);
    await noneLeft();
    assert.equal(changeOf(await resume(stage, 'a', second)), 'resumed');
  });

  test('the process that was idle longest makes room for another', async () => {
    await using stage = await openStage(() => ({ text: 'ok' }), { maxProcesses: 2 });
    const a = await collectEvents(stage.provider, start('a'));
    const b = await collectEvents(stage.provider, start('b'));
    const again = await resume(stage, 'a', a);
    await collectEvents(stage.provider, start('c'));
    while (childrenOf().length > 2) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(changeOf(await resume(stage, 'a', again)), 'warm');
    assert.equal(changeOf(await resume(stage, 'b', b)), 'resumed');
  });

  test('open turns are not closed to make room', async () => {
    const calling: FakeReply = { calls: [{ name: 'add', args: '{}' }] };
    const replies: FakeReply[] = [calling, { text: 'b' }, { text: 'a' }];
    const tools = [{ name: 'add', description: '', parameters: {} }];
    await using stage = await openStage(() => replies.shift() ?? {}, { maxProcesses: 1 });
    const asked = await collectEvents(stage.provider, start('a', { tools }));
    await collectEvents(stage.provider, start('b'));
    const [call] = callsOf(asked);
    assert.ok(call);
    const messages = [toolResult(call.id, 'add', '3')];
    const request = sampleRequest({ cacheKey: 'a', tools, messages, session: { kind: 'continue' } });
    assert.equal(textOf(await collectEvents(stage.provider, request)), 'a');
  });

  test('a second stream of a session waits for the first', async () => {
    const replies: FakeReply[] = [{ text: 'one' }, { text: 'two', delayMs: 20 }, { text: 'three' }];
    await using stage = await openStage(() => replies.shift() ?? {});
    const first = await collectEvents(stage.provider, start('a'));
    const both = await Promise.all([resume(stage, 'a', first), resume(stage, 'a', first)]);
    assert.deepEqual(both.map(textOf), ['two', 'three']);
    assert.deepEqual(both.map(changeOf), ['warm', 'rewound']);
  });

  test('an abort takes effect although the program hangs', async () => {
    const replies: FakeReply[] = [{ text: 'ok' }, HANGING, { text: 'again' }];
    await using stage = await openStage(() => replies.shift() ?? {});
    const first = await collectEvents(stage.provider, start('a'));
    const controller = new AbortController();
    const { session: mark } = endOf(first);
    assert.ok(mark);
    const realKill = process.kill.bind(process);
    using kill = vi.spyOn(process, 'kill');
    const request = sampleRequest({
      cacheKey: 'a',
      messages: [user('more')],
      session: { kind: 'resume', mark },
    });
    const events = await collectEvents(stage.provider, request, {
      signal: controller.signal,
      onEvent({ type }) {
        if (type !== 'text') return;
        for (const pid of childrenOf()) process.kill(pid, 'SIGSTOP');
        // The program cannot end before the abort is reported.
        kill.mockImplementation((pid, signal) => signal === 'SIGKILL' || realKill(pid, signal));
        controller.abort();
      },
    });
    assert.equal(events.at(-1)?.type, 'aborted');
    kill.mockRestore();
    for (const pid of childrenOf()) process.kill(pid, 'SIGKILL');
    assert.equal(changeOf(await resume(stage, 'a', first)), 'rewound');
  });

  test('a refused key and a server that hangs up are reported after one request', async () => {
    await using stage = await openStage(() => ({ error: { code: 'provider_auth' } }));
    assert.equal(failureOf(await collectEvents(stage.provider, start('a'))).code, 'provider_auth');
    assert.equal(stage.server.requests.length, 1);
    let connections = 0;
    const server = createServer((socket) => void ((connections += 1), socket.destroy())).listen(
      0,
      '127.0.0.1',
    );
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const provider = await stage.reopen({ baseUrl: `http://127.0.0.1:${port}` });
    assert.equal(failureOf(await collectEvents(provider, start('b'))).code, 'provider_unreachable');
    assert.equal(connections, 1);
    server.close();
  });

  test('a missing server is reported', async () => {
    await using stage = await openStage(() => ({}));
    await stage.server.close();
    const { code } = failureOf(await collectEvents(stage.provider, start('a')));
    assert.equal(code, 'provider_unreachable');
  });

  describe('an unusable program', () => {
    const folders: string[] = [];
    afterEach(() => {
      process.env[PEERS_ENV] = CLIS;
      for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
    });

    /** Replaces the real SDK with another one, for one test. */
    function install(version: string, code: string): void {
      const folder = mkdtempSync(path.join(tmpdir(), 'troupe-peers-'));
      folders.push(folder);
      const dir = path.join(folder, 'node_modules/@anthropic-ai/claude-agent-sdk');
      mkdirSync(dir, { recursive: true });
      writeFileSync(
        path.join(dir, 'package.json'),
        JSON.stringify({ version, main: 'sdk.mjs', type: 'module' }),
      );
      writeFileSync(path.join(dir, 'sdk.mjs'), code);
      process.env[PEERS_ENV] = folder;
    }

    /** The real SDK around another program. */
    function withProgram(script: string): string {
      const real = path.join(CLIS, 'node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs');
      const program = JSON.stringify(['-c', script]);
      return `import { query as real } from ${JSON.stringify(real)};
        export const query = ({ prompt, options }) => real({ prompt, options: { ...options,
          spawnClaudeCodeProcess: (spawn) => options.spawnClaudeCodeProcess({ ...spawn, command: '/bin/sh', args: ${program} }) } });`;
    }

    async function failure(over: Partial<ClaudeCodeOptions> = {}): Promise<ModelFailure> {
      await using stage = await openStage(() => ({ text: 'ok' }), over);
      const error = failureOf(await collectEvents(stage.provider, start('a')));
      await stage.provider.close?.();
      assert.deepEqual(childrenOf(), []);
      return error;
    }

    const cases: [string, () => void, RegExp, Partial<ClaudeCodeOptions>?][] = [
      [
        'is not installed',
        () => delete process.env[PEERS_ENV],
        /@anthropic-ai\/claude-agent-sdk, which is not installed: npm install/,
      ],
      ['is too old', () => install('0.2.9', ''), /0\.3\.330 or newer, and 0\.2\.9 is installed in/],
      ['cannot be loaded', () => install('0.3.330', 'throw new Error("no such library")'), /no such library/],
      [
        'ends at its start',
        () => install('0.4.0', withProgram('echo out of tune >&2; exit 3')),
        /0\.4\.0\) did not start: .*3.*out of tune/s,
      ],
      [
        'hangs at its start',
        () => install('0.4.0', withProgram('exec sleep 1000')),
        /0\.4\.0\) did not start: it said nothing for 300 ms/,
        { startTimeoutMs: 300 },
      ],
    ];
    for (const [name, arrange, words, over] of cases) {
      test(`it ${name}`, async () => {
        arrange();
        const { code, message } = await failure(over);
        assert.equal(code, 'provider_unusable', message);
        assert.match(message, words);
      });
    }
  });
});
