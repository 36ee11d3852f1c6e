import { createAnthropic } from '@ai-sdk/anthropic';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { defineTool, parseTroupe, type TroupeInput } from '../../src/index.ts';
import { createAiSdk } from '../../src/providers/ai-sdk/ai-sdk.ts';
import type { AiSdkModel } from '../../src/providers/ai-sdk-model.ts';
import {
  type FakeHandler,
  type FakeReply,
  type FakeServer,
  startFakeAnthropic,
  startFakeOpenAiResponses,
} from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, failureOf } from '../../packages/testing/src/provider-conformance.ts';
import { openTroupe } from '../support/mode.ts';
import { PICTURES } from '../support/pictures.ts';
import { claudeModel, geminiModel, responsesModel, startFakeGemini, vendorOfGemini } from './ai-sdk-stage.ts';
import { ADD_TOOL, assistant, result, sentBody, system, user } from './sent.ts';

interface Vendor {
  start: (handler?: FakeHandler) => Promise<FakeServer>;
  model: (url: string) => AiSdkModel;
}

const OPENAI: Vendor = {
  start: startFakeOpenAiResponses,
  model: (url) => responsesModel(url, {}, 'gpt-5'),
};
const CLAUDE: Vendor = {
  start: startFakeAnthropic,
  model: (url) => claudeModel(url, {}, 'claude-sonnet-4-5'),
};
const GEMINI: Vendor = {
  start: (handler) => startFakeGemini(handler, 'gemini-3-pro'),
  model: (url) => geminiModel(url, {}, 'gemini-3-pro'),
};

const agentWith = (model: AiSdkModel, more: Partial<AgentInput> = {}) =>
  ({ id: 'bo', provider: 'ai-sdk', model, contextWindow: 50_000, ...more }) as AgentInput;

const add = defineTool({
  name: 'add',
  description: 'Adds.',
  schema: z.object({ a: z.number() }),
  run({ a }) {
    if (a < 0) throw new Error('no negative numbers');
    return `sum ${a}`;
  },
});

/** The first answer calls the tool, the second one speaks. */
async function turnWithTool({ start, model }: Vendor, first: FakeReply): Promise<FakeServer> {
  const server = await start(({ number }) => (number === 1 ? first : { text: 'done' }));
  const agents = [agentWith(model(server.url), { tools: ['add'] })];
  await using troupe = await openTroupe({ agents, tools: [add] });
  expect((await troupe.ask('c', 'Add 3.')).text).toBe('done');
  return server;
}

const bodyOf = ({ requests }: FakeServer, index: number): unknown => requests[index]?.body;

const THINKS: FakeReply = {
  reasoning: 'I must add.',
  text: 'Wait.',
  calls: [{ name: 'add', args: '{"a":3}' }],
};
const FAILS: FakeReply = { calls: [{ name: 'add', args: '{"a":-3}' }] };

describe('a turn with a tool', () => {
  test('gives Anthropic its signed thinking back, before the call that it led to', async () => {
    await using server = await turnWithTool(CLAUDE, THINKS);
    const { messages } = bodyOf(server, 1) as { messages: { role: string; content: unknown[] }[] };
    expect(messages.slice(-2)).toMatchObject([
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'I must add.', signature: 'sig-1' },
          { type: 'text', text: 'Wait.' },
          { type: 'tool_use', id: 'toolu_1_0', name: 'add', input: { a: 3 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1_0', content: 'sum 3' }] },
    ]);
  });

  test('gives OpenAI its encrypted reasoning back, and stores nothing there', async () => {
    await using server = await turnWithTool(OPENAI, THINKS);
    const [first, second] = server.requests.map(({ body }) => body as Record<string, unknown>);
    expect(first).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    const input = second?.['input'] as Record<string, unknown>[];
    expect(input.slice(-4)).toMatchObject([
      { type: 'reasoning', encrypted_content: 'enc-1' },
      { role: 'assistant', content: 'Wait.' },
      { type: 'function_call', call_id: 'call_1_0', name: 'add', arguments: '{"a":3}' },
      { type: 'function_call_output', call_id: 'call_1_0', output: 'sum 3' },
    ]);
    expect(input.every(({ type }) => type !== 'item_reference')).toBe(true);
  });

  test('gives Google the signature of its call back', async () => {
    await using server = await turnWithTool(GEMINI, THINKS);
    const { contents } = bodyOf(server, 1) as { contents: { role: string; parts: object[] }[] };
    const [said, got] = contents.slice(-2);
    expect(said?.role).toBe('model');
    expect(said?.parts).toContainEqual(
      expect.objectContaining({
        functionCall: expect.objectContaining({ args: { a: 3 } }),
        thoughtSignature: 'sig-add',
      }),
    );
    expect(got?.parts).toMatchObject([{ functionResponse: { name: 'add', response: { content: 'sum 3' } } }]);
  });

  test('says that a tool failed', async () => {
    await using server = await turnWithTool(CLAUDE, FAILS);
    const { messages } = bodyOf(server, 1) as { messages: { content: object[] }[] };
    expect(messages.at(-1)?.content).toMatchObject([{ type: 'tool_result', is_error: true }]);
    expect(JSON.stringify(messages.at(-1))).toContain('no negative numbers');
  });
});

test('reasoning of another model is left out', async () => {
  await using server = await startFakeAnthropic();
  const reasoning = {
    text: 'Secret.',
    signature: 'ai-sdk:{"thoughts":[{"text":"Secret."}],"calls":{}}',
    provider: 'ai-sdk.openai.responses',
    model: 'm',
  };
  const said = { ...assistant('Hi.'), reasoning };
  const body = await sentBody(server, createAiSdk(claudeModel(server.url)), {
    messages: [user('a'), said, user('b')],
  });
  expect(JSON.stringify(body)).not.toContain('Secret');
});

test('a signature that is not whole is left out', async () => {
  await using server = await startFakeOpenAiResponses();
  const reasoning = {
    text: 'So.',
    signature: 'ai-sdk:{"thou',
    provider: 'ai-sdk.openai.responses',
    model: 'm',
  };
  const said = { ...assistant('Hi.'), reasoning };
  const body = await sentBody(server, createAiSdk(responsesModel(server.url)), {
    model: 'm',
    messages: [user('a'), said, user('b')],
  });
  expect(body['input']).toMatchObject([{}, { role: 'assistant' }, {}]);
});

test('results of one answer arrive together, and odd ids and arguments are mended', async () => {
  await using server = await startFakeAnthropic();
  const calls: [string, string][] = [
    ['a b', '{"a":1}'],
    ['c2', 'not json'],
  ];
  const messages = [user('Go.'), assistant('', calls), result('a b', 'one'), result('c2', 'two', true)];
  const body = await sentBody(server, createAiSdk(claudeModel(server.url)), { messages, tools: [ADD_TOOL] });
  const [, said, got] = body['messages'] as {
    content: { id?: string; tool_use_id?: string; input?: object }[];
  }[];
  expect(said?.content.map(({ input }) => input)).toEqual([{ a: 1 }, {}]);
  expect(got?.content.map((part) => part.tool_use_id)).toEqual(said?.content.map(({ id }) => id));
  expect(said?.content[0]?.id).toMatch(/^call_[0-9a-f]{32}$/);
});

describe('a prompt', () => {
  const picture = { hash: 'a'.repeat(64), mediaType: 'image/png' as const };
  const seen = {
    messages: [system('You are Bo.'), { ...user('What is it?'), images: [picture] } as never],
    images: new Map([[picture.hash, PICTURES.png.data]]),
  };

  test('shows images to every vendor', async () => {
    await using claude = await CLAUDE.start();
    expect(JSON.stringify(await sentBody(claude, createAiSdk(CLAUDE.model(claude.url)), seen))).toContain(
      `"source":{"type":"base64","media_type":"image/png","data":"${PICTURES.png.data}"}`,
    );
    await using openAi = await OPENAI.start();
    expect(JSON.stringify(await sentBody(openAi, createAiSdk(OPENAI.model(openAi.url)), seen))).toContain(
      `"type":"input_image","image_url":"data:image/png;base64,${PICTURES.png.data}"`,
    );
    await using gemini = await GEMINI.start();
    expect(JSON.stringify(await sentBody(gemini, createAiSdk(GEMINI.model(gemini.url)), seen))).toContain(
      `"inlineData":{"mimeType":"image/png","data":"${PICTURES.png.data}"}`,
    );
  });

  test('has cache marks where Claude reads it', async () => {
    await using server = await CLAUDE.start();
    const messages = [system('You are Bo.'), user('one'), assistant('two'), user('three')];
    const provider = createAiSdk(CLAUDE.model(server.url));
    expect(provider.capabilities.caching).toBe('breakpoints');
    const body = await sentBody(server, provider, { messages, breakpoints: [1] });
    const mark = { cache_control: { type: 'ephemeral' } };
    expect(body['system']).toMatchObject([mark]);
    const sent = body['messages'] as { content: object[] }[];
    expect(
      sent.map(({ content }) => content.at(-1) && 'cache_control' in (content.at(-1) as object)),
    ).toEqual([true, false, false]);
    expect(sent[0]?.content).toMatchObject([mark]);
  });

  test('has the limit, the sampling settings and the tools', async () => {
    await using server = await GEMINI.start();
    const sampling = { temperature: 0.3, topP: 0.9, seed: 5, stop: ['END'] };
    const provider = createAiSdk(GEMINI.model(server.url), { sampling });
    const body = await sentBody(server, provider, { tools: [ADD_TOOL], maxOutputTokens: 77 });
    const config = { maxOutputTokens: 77, temperature: 0.3, topP: 0.9, seed: 5 };
    expect(body['generationConfig']).toMatchObject({ ...config, stopSequences: ['END'] });
    expect(body['tools']).toMatchObject([{ functionDeclarations: [{ name: 'add', description: 'Adds.' }] }]);
  });
});

const SCHEMA = {
  type: 'object',
  properties: { ok: { type: 'boolean' } },
  required: ['ok'],
  additionalProperties: false,
};

describe('a reply that is data', () => {
  test.each([
    ['OpenAI', OPENAI, { text: { format: { type: 'json_schema', name: 'reply', strict: false } } }],
    ['Google', GEMINI, { generationConfig: { responseMimeType: 'application/json' } }],
  ])('is asked of %s as such', async (_, { start, model }, expected) => {
    await using server = await start(() => ({ text: '{"ok":true}' }));
    const agents = [agentWith(model(server.url), { reply: SCHEMA as never })];
    await using troupe = await openTroupe({ agents });
    expect((await troupe.ask('c', 'Is it?')).data).toEqual({ ok: true });
    expect(server.requests[0]?.body).toMatchObject(expected);
  });

  test('is asked in words of a Gemini that takes no schema beside tools', async () => {
    await using server = await startFakeGemini(undefined, 'gemini-2.5-flash');
    const provider = createAiSdk(geminiModel(server.url, {}, 'gemini-2.5-flash'));
    const body = await sentBody(server, provider, { replySchema: SCHEMA, tools: [ADD_TOOL] });
    expect(body['generationConfig']).not.toHaveProperty('responseMimeType');
    expect(JSON.stringify(body['systemInstruction'])).toContain('Answer with a JSON object');
  });
});

describe('the definition', () => {
  test('takes a model by name, alone or from its package', async () => {
    await using server = await startFakeGemini(undefined, 'gemini-3-pro');
    const byName = (id: string, adapter: string, model: string) =>
      ({ id, provider: 'custom', adapter, model, contextWindow: 50_000 }) as const;
    const agents = [byName('bo', 'gemini', 'gemini-3-pro'), byName('cy', 'pro', 'any')];
    const providers = { gemini: vendorOfGemini(server.url), pro: GEMINI.model(server.url) };
    await using troupe = await openTroupe({ agents, providers });
    expect((await troupe.ask('c', { to: ['bo'], content: 'hi' })).text).toBe('ok');
    expect((await troupe.ask('c', { to: ['cy'], content: 'hi' })).text).toBe('ok');
    expect(server.requests).toHaveLength(2);
  });

  test('is the same when it is read twice', () => {
    const once = parseTroupe({ agents: [agentWith(GEMINI.model('http://127.0.0.1:1'))] });
    expect(once.agents[0]).toMatchObject({ provider: 'ai-sdk', model: 'gemini-3-pro' });
    expect(parseTroupe(once)).toEqual(once);
  });

  const refused = (agent: object, message: RegExp, more: Partial<TroupeInput> = {}) => {
    const definition = { agents: [{ id: 'bo', provider: 'ai-sdk', ...agent }], ...more };
    expect(() => parseTroupe(definition)).toThrow(message);
  };

  test('refuses what is no model, and models of older versions', () => {
    const noModel = /agents\[0\]\.model: is a model of a package of the AI SDK/;
    refused({ model: 'anthropic/claude' }, noModel);
    refused({}, noModel);
    const old = { specificationVersion: 'v3', provider: 'x', modelId: 'm', doStream: () => undefined };
    refused({ model: old }, /agents\[0\]\.model: is a model of version v3 .* v4 is needed: install/);
    refused({ model: old }, /providers\.old: is a model of version v3/, { providers: { old } as never });
  });
});

test('a key that is missing is said with the name of its variable', async () => {
  await using server = await startFakeAnthropic();
  vi.stubEnv('ANTHROPIC_API_KEY', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const model = createAnthropic({ baseURL: server.url })('m');
  await using troupe = await openTroupe({ agents: [agentWith(model)] }, { onWarning: () => undefined });
  const { outcome, failures } = await troupe.ask('c', 'hi');
  expect([outcome, failures[0]?.code]).toEqual(['failed', 'provider_auth']);
  expect(failures[0]?.message).toContain('ANTHROPIC_API_KEY');
});

test('an answer that is not JSON is a failure of bounded length, without a key', async () => {
  const secret = 'gateway-secret-4711';
  const body = `data: {"text":"${'x'.repeat(1_800)}${secret.repeat(1_000)}\n\n`;
  const headers = { 'content-type': 'text/event-stream' };
  await using server = await OPENAI.start(() => ({ raw: { status: 200, headers, body } }));
  const extras = { headers: {}, body: {}, secrets: [secret] };
  const failure = failureOf(await collectEvents(createAiSdk(OPENAI.model(server.url), { extras })));
  expect(failure.code).toBe('provider_invalid_reply');
  expect(failure.message.length).toBeLessThanOrEqual(2_000);
  expect(failure.message).not.toContain('secret');
});
