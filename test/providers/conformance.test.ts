import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createAiSdk } from '../../src/providers/ai-sdk/ai-sdk.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { createScripted } from '../../src/providers/scripted.ts';
import { ScriptRule } from '../../src/providers/script.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { openRecording, readRecording, record, createReplay } from '../../src/providers/recording.ts';
import type { ReplyLimitSettings } from '../../src/providers/reply-limits.ts';
import {
  collectEvents,
  sampleRequest,
  providerConformance,
  type MakeProvider,
} from '../../packages/testing/src/provider-conformance.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeHandler,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { ownProvider } from '../support/own-provider.ts';
import { sceneServer } from '../support/scene-server.ts';
import { a2a } from '../../packages/agents/test/a2a-scene.ts';
import { claudeModel } from './ai-sdk-stage.ts';
import { HAS_CLAUDE_CODE, NO_CLAUDE_CODE, openStage } from '../../packages/agents/test/claude-code-stage.ts';
import { NO_CODEX, startCodexStage } from '../../packages/agents/test/codex-stage.ts';
import { ADD_TOOL } from './sent.ts';

function overHttp(
  start: (handler?: FakeHandler) => Promise<FakeServer>,
  create: (url: string, replyLimits: ReplyLimitSettings) => Provider,
): MakeProvider {
  return async (scene, replyLimits) => {
    const { url, ...fixture } = await sceneServer(scene, start);
    return { ...fixture, provider: create(url, replyLimits) };
  };
}

const NEVER_MS = 3_600_000;

const scripted: MakeProvider = async (scene, replyLimits) => {
  if (scene === 'unreachable' || scene.stop || scene.usage !== undefined || scene.reasoning) return null;
  // Scripted replies come from the operator, so they are not hostile.
  if (scene.raw || Object.keys(replyLimits).length > 0) return null;
  if (scene.error?.retryAfter) return null;
  const { text = '', chunk = 8, breaks, error } = scene;
  const broken = breaks &&
    breaks.how !== 'hang' && { after: breaks.after * chunk, code: 'provider_truncated' };
  const failing = error && { after: (error.after ?? 0) * chunk, code: error.code };
  const rule = ScriptRule.parse({
    reply: text,
    chunk,
    calls: (broken ? [] : (scene.calls ?? [])).map(({ name, args }) => ({ name, args })),
    delayMs: scene.hang ? NEVER_MS : 0,
    chunkDelayMs: breaks?.how === 'hang' ? NEVER_MS : 0,
    fail: broken || failing,
  });
  return {
    provider: createScripted({ script: { rules: [rule] }, clock: systemClock }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
};

const openAi = overHttp(startFakeOpenAi, (baseUrl, replyLimits) =>
  createOpenAiCompatible({ baseUrl, apiKey: 'key-of-test', replyLimits }),
);

/** Replays the answer of the OpenAI-compatible adapter from a file. A vendor that hangs is aborted. */
const replay: MakeProvider = async (scene, replyLimits) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-replay-'));
  const file = path.join(folder, 'recording.jsonl');
  const redact = (text: string) => text;
  await using original = await openAi(scene, replyLimits);
  if (!original) return null;
  const { name, capabilities } = original.provider;
  const write = openRecording(file, { at: '', agents: { ana: { name, capabilities } } });
  const onWarning = (error: unknown) => {
    throw error;
  };
  const recorded = record(original.provider, { write, redact, clock: systemClock, onWarning });
  const stop = new AbortController();
  const hangs = scene !== 'unreachable' && (scene.hang === true || scene.breaks?.how === 'hang');
  if (scene !== 'unreachable' && scene.hang) void original.arrived?.().then(() => stop.abort());
  await collectEvents(recorded, sampleRequest(), {
    signal: stop.signal,
    onEvent: ({ type }) => hangs && type === 'text' && stop.abort(),
  });
  return {
    provider: createReplay([readRecording(file)], redact).provider('ana', name),
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
  };
};

/** Codex itself answers calls of tools that a request does not offer. */
const codex: MakeProvider = async (scene, replyLimits) => {
  // Codex passes on no `retry-after` header, and knows no errors within a stream by this event.
  if (scene !== 'unreachable' && (scene.error?.retryAfter || scene.error?.after !== undefined)) return null;
  // Codex itself reads invalid responses.
  if (scene !== 'unreachable' && scene.raw) return null;
  const stage = await startCodexStage(() => (scene === 'unreachable' ? {} : scene), { replyLimits });
  if (scene === 'unreachable') await stage.api.close();
  const calls = scene === 'unreachable' ? [] : (scene.calls ?? []);
  const tools = calls.map(({ name }) => ({ ...ADD_TOOL, name }));
  const { provider } = stage;
  return {
    ...stage,
    isProgram: true,
    provider: {
      ...provider,
      stream: (request, options) => provider.stream({ ...request, tools }, options),
    },
    arrived: () => stage.api.arrived(),
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
};

const claudeCode: MakeProvider = async (scene, replyLimits) => {
  // Claude Code passes on no `retry-after` header, and nothing that it had not read when the stream was cut.
  if (scene !== 'unreachable' && (scene.error?.retryAfter || scene.breaks?.how === 'cut')) return null;
  // Claude Code itself reads invalid responses.
  if (scene !== 'unreachable' && scene.raw) return null;
  const stage = await openStage(() => (scene === 'unreachable' ? {} : scene), { replyLimits });
  if (scene === 'unreachable') await stage.server.close();
  const calls = scene === 'unreachable' ? [] : (scene.calls ?? []);
  const tools = calls.map(({ name }) => ({ ...ADD_TOOL, name }));
  const { provider, server } = stage;
  return {
    isProgram: true,
    provider: {
      ...provider,
      async *stream(request, options) {
        const session = { kind: 'start' } as const;
        for await (const event of provider.stream({ ...request, tools, session }, options))
          if (event.type !== 'session') yield event;
      },
    },
    // After a 404 it asks once more, without streaming.
    requests: () =>
      server.requests.filter(({ body }) => (body as { stream?: boolean }).stream === true).length,
    arrived: () => server.arrived(),
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
};

const ADAPTERS: Record<string, MakeProvider> = {
  [HAS_CLAUDE_CODE ? 'claude-code' : NO_CLAUDE_CODE]: claudeCode,
  [`codex${NO_CODEX}`]: codex,
  scripted,
  'openai-compatible': openAi,
  openai: overHttp(startFakeOpenAiResponses, (baseUrl, replyLimits) =>
    createOpenAi({ baseUrl, apiKey: 'key-of-test', replyLimits }),
  ),
  anthropic: overHttp(startFakeAnthropic, (baseUrl, replyLimits) =>
    createAnthropic({ baseUrl, apiKey: 'key-of-test', replyLimits }),
  ),
  // More vendors: ai-sdk-conformance.test.ts.
  'ai-sdk': overHttp(startFakeAnthropic, (url, replyLimits) =>
    createAiSdk(claudeModel(url, replyLimits), { replyLimits }),
  ),
  a2a,
  'of a program': overHttp(startFakeOpenAi, ownProvider),
  replay,
};

describe.each(Object.entries(ADAPTERS))('%s', (adapter, make) => {
  for (const { group, name, ...rest } of providerConformance(make))
    test.skipIf(adapter.includes('skipped:'))(`${group}: ${name}`, () => rest.run());
});
