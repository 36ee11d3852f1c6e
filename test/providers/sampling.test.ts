import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseTroupe } from '../../src/library/config/agents-file.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { createProvider } from '../../src/library/runtime/registry.ts';
import { ProviderSettings } from '../../src/providers/settings.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import type { ModelRequest } from '../../src/providers/provider.ts';
import { sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { sentBody } from './sent.ts';

let chat: FakeServer;
let responses: FakeServer;
let anthropic: FakeServer;

beforeAll(async () => {
  chat = await startFakeOpenAi();
  responses = await startFakeOpenAiResponses(() => ({ text: 'ok' }));
  anthropic = await startFakeAnthropic();
});
afterAll(() => Promise.all([chat, responses, anthropic].map((server) => server.close())));

/** The body sent for an agent with these settings. */
async function sent(server: FakeServer, settings: object, over: Partial<ModelRequest> = {}) {
  const parsed = ProviderSettings.parse({ baseUrl: server.url, ...settings });
  const context = { clock: createFakeClock(), readScript: () => null, home: '' };
  const env = { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' };
  return sentBody(server, await createProvider(parsed, { ...context, env }), {
    model: parsed.model,
    ...over,
  });
}

const ALL = { temperature: 0.2, topP: 0.9, seed: 7, stop: ['END', '\n\n'] };
const SUMMARY: Partial<ModelRequest> = {
  trace: { ...sampleRequest({}).trace, purpose: 'compaction' },
};

describe('sampling settings reach', () => {
  test('a chat completions server, under its names', async () => {
    const settings = { provider: 'openai-compatible', model: 'qwen3', ...ALL };
    expect(await sent(chat, { ...settings, providerOptions: { top_k: 40 } })).toMatchObject({
      temperature: 0.2,
      top_p: 0.9,
      top_k: 40,
      seed: 7,
      stop: ['END', '\n\n'],
    });
  });

  test('a server that calls the seed otherwise', async () => {
    const quirks = { like: 'api.mistral.ai' };
    const body = await sent(chat, { provider: 'openai-compatible', seed: 7, quirks });
    expect(body).toMatchObject({ random_seed: 7 });
    expect(body).not.toHaveProperty('seed');
  });

  test('the Responses API', async () => {
    const settings = { provider: 'openai', model: 'gpt-4.1', temperature: 0, topP: 0.5 };
    expect(await sent(responses, settings)).toMatchObject({ temperature: 0, top_p: 0.5 });
  });

  test('a server with the messages API', async () => {
    const { seed: _seed, stop: _stop, ...settings } = ALL;
    const claude = { provider: 'anthropic', model: 'claude-sonnet-4-5', stop: ['END'], ...settings };
    expect(await sent(anthropic, claude)).toMatchObject({
      temperature: 0.2,
      top_p: 0.9,
      stop_sequences: ['END'],
    });
  });

  test('requests for turns and for summaries, except that a summary is not stopped', async () => {
    const settings = { provider: 'openai-compatible', model: 'qwen3', ...ALL };
    const body = await sent(chat, settings, SUMMARY);
    expect(body).toMatchObject({ temperature: 0.2, seed: 7 });
    expect(body).not.toHaveProperty('stop');
    const claude = { provider: 'anthropic', model: 'claude-sonnet-4-5', stop: ['END'] };
    expect(await sent(anthropic, claude, SUMMARY)).not.toHaveProperty('stop_sequences');
  });

  test('nobody if they are not set', async () => {
    const names = ['temperature', 'top_p', 'top_k', 'seed', 'random_seed', 'stop', 'stop_sequences'];
    const bodies = [
      await sent(chat, { provider: 'openai-compatible', model: 'qwen3' }),
      await sent(responses, { provider: 'openai', model: 'gpt-5' }),
      await sent(anthropic, { provider: 'anthropic', model: 'claude-opus-5' }),
    ];
    for (const body of bodies) for (const name of names) expect(body).not.toHaveProperty(name);
  });
});

/** The problems of an agents file whose only agent has these settings. */
function problemsOf(settings: object): string[] {
  try {
    parseTroupe({ agents: [{ id: 'a', ...settings }] });
    return [];
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    expect(error.code).toBe('config_invalid');
    return error.data['problems'] as string[];
  }
}

const FOREIGN = { provider: 'anthropic', baseUrl: 'http://127.0.0.1:9' };
const CHAT = { provider: 'openai-compatible' };

describe('an agents file is refused, naming field and reason, for', () => {
  test.each<[string, object, RegExp]>([
    [
      'a temperature at Anthropic',
      { provider: 'anthropic', model: 'claude-sonnet-4-5', temperature: 0 },
      /^agents\[0\]\.temperature: .*2026-10-21/,
    ],
    [
      'a temperature with thinking',
      { ...FOREIGN, model: 'claude-sonnet-4-5', thinking: 'adaptive', temperature: 0.5 },
      /temperature: a model that thinks/,
    ],
    [
      'a low topP with thinking',
      { ...FOREIGN, model: 'claude-sonnet-4-5', thinking: 'adaptive', topP: 0.5 },
      /topP: .*0\.95/,
    ],
    [
      'a Claude that takes none, wherever it runs',
      { ...FOREIGN, model: 'anthropic/claude-opus-4.7', temperature: 0 },
      /temperature: .*claude-opus-4\.7 does not take it/,
    ],
    [
      'a temperature above 1 for Claude',
      { ...FOREIGN, model: 'claude-sonnet-4-5', temperature: 1.5 },
      /temperature: is at most 1/,
    ],
    ['a seed at Anthropic', { provider: 'anthropic', seed: 1 }, /seed: Anthropic's API has no such setting/],
    ['a blank stop text at Anthropic', { provider: 'anthropic', stop: ['\n'] }, /stop: Anthropic refuses/],
    [
      'a stop text in the Responses API',
      { provider: 'openai', model: 'gpt-4.1', stop: ['x'] },
      /stop: OpenAI's Responses API/,
    ],
    [
      'a temperature of a reasoning model',
      { provider: 'openai', model: 'o3', temperature: 0 },
      /temperature: o3 reasons/,
    ],
    [
      'a temperature of gpt-5.5',
      { provider: 'openai', model: 'gpt-5.5', temperature: 0 },
      /temperature: gpt-5\.5 reasons/,
    ],
    ['a stop text of a reasoning model', { ...CHAT, model: 'o4-mini', stop: ['x'] }, /stop: o4-mini reasons/],
    [
      'a seed at DeepSeek',
      { ...CHAT, baseUrl: 'https://api.deepseek.com', seed: 1 },
      /seed: api\.deepseek\.com/,
    ],
    [
      'any of them with Claude Code',
      { provider: 'claude-code', temperature: 0 },
      /temperature: claude-code has no such setting/,
    ],
    ['any of them with Codex', { provider: 'codex', stop: ['x'] }, /stop: codex has no such setting/],
    ['a temperature out of range', { ...CHAT, temperature: 3 }, /temperature: /],
    ['no stop text at all', { ...CHAT, stop: [] }, /stop: /],
  ])('%s', (_name, settings, problem) => {
    expect(problemsOf(settings)).toEqual([expect.stringMatching(problem)]);
  });

  test('an address that is none, which is one problem', () => {
    expect(problemsOf({ ...CHAT, baseUrl: 'nowhere', seed: 1 })).toEqual([
      expect.stringMatching(/^agents\[0\]\.baseUrl: /),
    ]);
  });
});

test.each([
  { ...FOREIGN, model: 'claude-sonnet-4-5', thinking: 'adaptive', temperature: 1, topP: 0.97 },
  { provider: 'openai', model: 'gpt-5.2-chat-latest', temperature: 0.3 },
  { ...CHAT, model: 'olmo-2', baseUrl: 'http://localhost:11434/v1', temperature: 0, seed: 1 },
  { provider: 'scripted', script: { rules: [{}] }, ...ALL },
])('%o is accepted', (settings) => {
  expect(problemsOf(settings)).toEqual([]);
});
