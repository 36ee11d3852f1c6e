import { describe, expect, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { parseTroupe } from '../../src/index.ts';
import {
  type FakeHandler,
  type FakeRequest,
  type FakeServer,
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
} from '../../packages/testing/src/fake-vendors.ts';
import { openTroupe } from '../support/mode.ts';
import { claudeModel, responsesModel } from './ai-sdk-stage.ts';

const SECRET = 'gateway-secret-4711';
const ENV = { KEY: 'key-of-test', GATEWAY: SECRET };
const EXTRAS = { headers: { 'X-Team': 'red' }, headersEnv: { 'X-Gateway': 'GATEWAY' } };

type Agent = Partial<AgentInput> | ((url: string) => Partial<AgentInput>);

/** What the server gets of a turn of this agent. */
async function sent(start: (handler?: FakeHandler) => Promise<FakeServer>, agent: Agent) {
  await using server = await start();
  const own =
    typeof agent === 'function' ? agent(server.url) : { baseUrl: server.url, apiKeyEnv: 'KEY', ...agent };
  const agents = [{ id: 'bo', model: 'm', contextWindow: 50_000, ...own } as AgentInput];
  await using troupe = await openTroupe({ agents }, { env: ENV });
  expect((await troupe.ask('c', 'hi')).text).toBe('ok');
  const { headers, body } = server.requests[0] as FakeRequest;
  return { headers, body };
}

const TEAM = { 'x-team': 'red', 'x-gateway': SECRET };

describe('headers, options and effort of an agent', () => {
  test('reach a server of chat completions', async () => {
    const providerOptions = { service_tier: 'flex', thinking: { type: 'disabled' } };
    const agent = { provider: 'openai-compatible', effort: 'low', providerOptions, ...EXTRAS } as const;
    const { headers, body } = await sent(startFakeOpenAi, agent);
    expect(headers).toMatchObject({ ...TEAM, authorization: 'Bearer key-of-test' });
    expect(body).toMatchObject({ ...providerOptions, reasoning_effort: 'low' });
  });

  test("reach OpenAI's responses, also beside each other", async () => {
    const providerOptions = { reasoning: { summary: 'auto' }, service_tier: 'flex' };
    const agent = { provider: 'openai', effort: 'high', providerOptions, ...EXTRAS } as const;
    const { headers, body } = await sent(startFakeOpenAiResponses, agent);
    expect(headers).toMatchObject(TEAM);
    expect(body).toMatchObject({
      reasoning: { effort: 'high', summary: 'auto' },
      service_tier: 'flex',
      store: false,
    });
  });

  test('reach Anthropic, with beta features beside those of its settings', async () => {
    const { headers, body } = await sent(startFakeAnthropic, {
      provider: 'anthropic',
      model: 'claude-opus-5-5',
      providerOptions: { metadata: { user_id: 'u1' } },
      headers: { 'Anthropic-Beta': 'own-beta' },
      headersEnv: EXTRAS.headersEnv,
    } as never);
    expect(headers).toMatchObject({ 'x-gateway': SECRET, 'x-api-key': 'key-of-test' });
    expect(headers['anthropic-beta']).toBe('thinking-binding-controls-2026-08-01,own-beta');
    expect(body).toMatchObject({ metadata: { user_id: 'u1' } });
  });

  test('reach models of the AI SDK, options by vendor', async () => {
    const options = { provider: 'ai-sdk', effort: 'low', ...EXTRAS } as const;
    const openAi = await sent(
      startFakeOpenAiResponses,
      (url) =>
        ({
          ...options,
          model: responsesModel(url, {}, 'gpt-5'),
          providerOptions: { openai: { serviceTier: 'flex' } },
        }) as never,
    );
    expect(openAi.headers).toMatchObject(TEAM);
    expect(openAi.body).toMatchObject({ reasoning: { effort: 'low' }, service_tier: 'flex', store: false });
    const providerOptions = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } };
    const claude = await sent(
      startFakeAnthropic,
      (url) =>
        ({ provider: 'ai-sdk', model: claudeModel(url, {}, 'claude-sonnet-4-5'), providerOptions }) as never,
    );
    expect(claude.body).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 1_024 } });
  });
});

test.each([
  ['whole', SECRET],
  ['without its scheme', `Bearer ${SECRET}`],
])('a secret header is in no failure of a call, %s', async (_, header) => {
  await using server = await startFakeOpenAi(() => ({
    error: { code: 'provider_auth', message: `${SECRET} is wrong` },
  }));
  const agent = {
    id: 'bo',
    provider: 'openai-compatible',
    model: 'm',
    baseUrl: server.url,
    apiKeyEnv: 'KEY',
    contextWindow: 50_000,
    ...EXTRAS,
  };
  await using troupe = await openTroupe(
    { agents: [agent as AgentInput] },
    { env: { ...ENV, GATEWAY: header }, onWarning: () => undefined },
  );
  const { failures } = await troupe.ask('c', 'hi');
  expect(failures[0]?.message).toContain('[key] is wrong');
  expect(JSON.stringify(await troupe.events('c'))).not.toContain(SECRET);
});

describe('a definition', () => {
  const refused: [string, object, RegExp][] = [
    [
      'a secret among the plain headers',
      { headers: { Authorization: 'Bearer x' } },
      /headers\.Authorization: holds a secret: name the variable/,
    ],
    [
      'a key among the plain headers',
      { headers: { 'x-a': 'sk-0123456789abcdefghij' } },
      /headers\.x-a: this is a key: name the variable/,
    ],
    [
      'a header of the connection',
      { headersEnv: { Host: 'GATEWAY' } },
      /headersEnv\.Host: every request sets it/,
    ],
    ['a header with a line end', { headers: { 'x-a': 'a\nb: c' } }, /headers\.x-a: a header is one line/],
    ['what is no name of a header', { headers: { 'x a': 'b' } }, /this is no name of a header|Invalid key/],
    [
      'a field that the conversation decides',
      { providerOptions: { messages: [] } },
      /providerOptions\.messages: Troupe sets it itself/,
    ],
    [
      'what would lose the encrypted reasoning',
      { providerOptions: { include: [] } },
      /providerOptions\.include: Troupe sets it itself/,
    ],
    [
      'effort of a model that does not reason',
      { model: 'gpt-4o', effort: 'low' },
      /effort: gpt-4o does not reason/,
    ],
  ];
  test.each(refused)('refuses %s', (_, settings, message) => {
    const agent = { id: 'bo', provider: 'openai', model: 'm', ...settings };
    expect(() => parseTroupe({ agents: [agent] })).toThrow(message);
  });

  test.each(['agents', 'templates'] as const)('names options of %s that contain themselves', async (list) => {
    const metadata: Record<string, unknown> = {};
    metadata['self'] = { inside: [metadata] };
    const bo = { id: 'bo', provider: 'openai', model: 'm', apiKeyEnv: 'KEY', providerOptions: { metadata } };
    const company = { agents: [], [list]: [bo] } as unknown as TroupeInput;
    await expect(openTroupe(company, { env: ENV })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining(`${list}[0].providerOptions: contains itself`),
    });
  });

  test('refuses options of the AI SDK that are not by vendor', () => {
    const agent = {
      id: 'bo',
      provider: 'ai-sdk',
      model: claudeModel('http://127.0.0.1:1'),
      providerOptions: { store: true },
    };
    expect(() => parseTroupe({ agents: [agent] })).toThrow(
      /providerOptions\.store: are the options of one vendor/,
    );
  });

  test('needs the variables of its headers', async () => {
    const agent = {
      id: 'bo',
      provider: 'openai',
      model: 'm',
      apiKeyEnv: 'KEY',
      headersEnv: { 'x-a': 'MISSING' },
    };
    await expect(openTroupe({ agents: [agent as AgentInput] }, { env: ENV })).rejects.toThrow(
      /the environment variable MISSING is not set: headersEnv takes the header "x-a" from it/,
    );
  });
});
