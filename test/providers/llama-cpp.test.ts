import { describe, expect, test } from 'vitest';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelRequest, Provider } from '../../src/providers/provider.ts';
import { collectEvents, sampleRequest } from '../../src/testing/provider-scene.ts';
import { startFakeOpenAi, startFakeOpenAiResponses } from '../../src/testing/fake-vendors.ts';
import { likeLlamaCpp, LLAMA_CPP, REFUSED_SCHEMAS } from '../support/llama-cpp.ts';

type Start = typeof startFakeOpenAi;
const ADAPTERS: [string, Start, (baseUrl: string) => Provider][] = [
  ['openai-compatible', startFakeOpenAi, (baseUrl) => createOpenAiCompatible({ baseUrl, apiKey: 'k' })],
  ['openai', startFakeOpenAiResponses, (baseUrl) => createOpenAi({ baseUrl, apiKey: 'k' })],
];

function withX(x: unknown): Record<string, unknown> {
  return { type: 'object', properties: { x }, required: ['x'], additionalProperties: false };
}

describe.each(ADAPTERS)('%s', (_, start, create) => {
  test.each(Object.entries(REFUSED_SCHEMAS))(
    'a schema with %s is sent in the form that llama.cpp accepts',
    async (_name, [x]) => {
      await using server = await start(likeLlamaCpp);
      const tools = [{ name: 't', description: 'T.', parameters: withX(x) }];
      for (const over of [{ tools }, { replySchema: withX(x) }]) {
        const events = await collectEvents(create(server.url), sampleRequest(over));
        expect(events.at(-1)).toMatchObject({ type: 'done' });
      }
    },
  );

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

test.each(Object.entries(REFUSED_SCHEMAS))(
  'a whole schema with %s is refused, as recorded',
  async (_, [x, why]) => {
    await using server = await startFakeOpenAi(likeLlamaCpp);
    const quirks = { schemas: 'whole' } as const;
    const provider = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k', quirks });
    const tools = [{ name: 't', description: 'T.', parameters: withX(x) }];
    const events = await collectEvents(provider, sampleRequest({ tools }));
    const message = expect.stringContaining(why) as string;
    expect(events.at(-1)).toMatchObject({
      type: 'failed',
      error: { code: 'provider_invalid_request', message },
    });
  },
);
