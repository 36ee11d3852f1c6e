import { describe, expect, test } from 'vitest';
import { createOpenAI } from '@ai-sdk/openai';
import { createAiSdk } from '../../src/providers/ai-sdk/ai-sdk.ts';
import { anthropicBody } from '../../src/providers/anthropic/messages.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelRequest, Provider } from '../../src/providers/provider.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
} from '../../packages/testing/src/fake-vendors.ts';
import { builtinTools } from '../../src/tools/builtin/index.ts';
import { likeLlamaCpp, LLAMA_CPP, REFUSED_SCHEMAS, REFUSED_WHOLES } from '../support/llama-cpp.ts';

type Start = typeof startFakeOpenAi;
const ADAPTERS: [string, Start, (baseUrl: string) => Provider][] = [
  ['openai-compatible', startFakeOpenAi, (baseUrl) => createOpenAiCompatible({ baseUrl, apiKey: 'k' })],
  ['openai', startFakeOpenAiResponses, (baseUrl) => createOpenAi({ baseUrl, apiKey: 'k' })],
  ['anthropic', startFakeAnthropic, (baseUrl) => createAnthropic({ baseUrl, apiKey: 'k' })],
  [
    'ai-sdk',
    startFakeOpenAi,
    (baseURL) => createAiSdk(createOpenAI({ name: 'mine', baseURL, apiKey: 'k' }).chat('m')),
  ],
];

function withX(x: unknown): Record<string, unknown> {
  return { type: 'object', properties: { x }, required: ['x'], additionalProperties: false };
}

const REFUSED: [name: string, schema: Record<string, unknown>, why: string][] = [
  ...Object.entries(REFUSED_SCHEMAS).map(([name, [x, why]]): (typeof REFUSED)[number] => [
    name,
    withX(x),
    why,
  ]),
  ...Object.entries(REFUSED_WHOLES).map(([name, [schema, why]]): (typeof REFUSED)[number] => [
    name,
    schema,
    why,
  ]),
];

describe.each(ADAPTERS)('%s', (adapter, start, create) => {
  test.each(REFUSED)('a schema with %s is sent in the form that llama.cpp accepts', async (_, schema) => {
    await using server = await start(likeLlamaCpp);
    const tools = [{ name: 't', description: 'T.', parameters: schema }];
    // Anthropic's dialect of replies demands a type everywhere, and is refused before it is sent.
    const replies = adapter === 'anthropic' ? [] : [{ replySchema: schema }];
    for (const over of [{ tools }, ...replies]) {
      const events = await collectEvents(create(server.url), sampleRequest(over));
      expect(events.at(-1)).toMatchObject({ type: 'done' });
    }
  });

  test('the built-in tools are sent in the form that llama.cpp accepts', async () => {
    await using server = await start(likeLlamaCpp);
    const tools = builtinTools('agent').map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }));
    const events = await collectEvents(create(server.url), sampleRequest({ tools }));
    expect(events.at(-1)).toMatchObject({ type: 'done' });
    expect(JSON.stringify(server.requests.map(({ body }) => (body as { tools: unknown }).tools))).not.toMatch(
      /"(?:pattern|format|prefixItems|m(?:in|ax)(?:Length|Items))":/,
    );
  });

  test('a second turn is accepted, because every item names its type', async () => {
    await using server = await start(likeLlamaCpp);
    const messages: ModelRequest['messages'] = [
      { role: 'user', content: 'Hi', seqs: [1] },
      { role: 'assistant', content: 'Hello', seqs: [2] },
      { role: 'user', content: 'And now?', seqs: [3] },
    ];
    const events = await collectEvents(create(server.url), sampleRequest({ messages }));
    expect(events.at(-1)).toMatchObject({ type: 'done' });
  });

  test('a server that loads its model is unavailable, and a context overflow names the window', async () => {
    for (const [raw, error] of [
      [LLAMA_CPP.loading, { code: 'provider_overloaded', isAway: true }],
      [LLAMA_CPP.contextSize, { code: 'context_overflow' }],
    ] as const) {
      await using server = await start(() => ({ raw }));
      const events = await collectEvents(create(server.url), sampleRequest());
      expect(events.at(-1)).toMatchObject({ type: 'failed', error });
    }
  });
});

test.each(REFUSED)('a whole schema with %s is refused, as recorded', async (_, schema, why) => {
  await using server = await startFakeOpenAi(likeLlamaCpp);
  const quirks = { schemas: 'whole' } as const;
  const provider = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k', quirks });
  const tools = [{ name: 't', description: 'T.', parameters: schema }];
  const events = await collectEvents(provider, sampleRequest({ tools }));
  const message = expect.stringContaining(why) as string;
  expect(events.at(-1)).toMatchObject({
    type: 'failed',
    error: { code: 'provider_invalid_request', message },
  });
});

test('Anthropic itself gets the whole schema', () => {
  const parameters = { type: 'object', properties: { at: { type: 'string', pattern: String.raw`^\d+$` } } };
  const tools = [{ name: 't', description: 'T.', parameters }];
  const body = anthropicBody(sampleRequest({ tools }), 'anthropic');
  expect(body.tools).toMatchObject([{ input_schema: parameters }]);
});
