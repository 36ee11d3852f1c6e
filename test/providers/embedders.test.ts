import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, test } from 'vitest';
import { boundedFetch, defineEmbedder, parseTroupe } from '../../src/index.ts';
import { createAiSdkEmbedder } from '../../src/providers/ai-sdk/ai-sdk.ts';
import type { AiSdkEmbeddingModel } from '../../src/providers/ai-sdk-model.ts';
import type { Embedder } from '../../src/providers/embedder.ts';
import { embedderConformance, type MakeEmbedder } from '../../packages/testing/src/embedder-conformance.ts';
import { sceneServer } from '../support/scene-server.ts';

const overHttp =
  (create: (url: string) => Embedder): MakeEmbedder =>
  async (scene) => {
    const { url, ...fixture } = await sceneServer(scene);
    return { ...fixture, embedder: create(url) };
  };

const model = (url: string) =>
  createOpenAI({ baseURL: url, apiKey: 'key-of-test', fetch: boundedFetch() }).embedding('small');

/** An embedder as a program would write it. */
const own = (url: string) =>
  defineEmbedder({
    name: 'own',
    model: 'small',
    secrets: ['key-of-test'],
    async read(input, { signal, fetch }) {
      const headers = { 'content-type': 'application/json', authorization: 'Bearer key-of-test' };
      const body = JSON.stringify({ model: 'small', input });
      const response = await fetch(`${url}/embeddings`, { method: 'POST', headers, body, signal });
      const answer = (await response.json()) as {
        data: { embedding: number[] }[];
        error?: { message: string };
      };
      if (response.ok) return answer.data.map(({ embedding }) => embedding);
      throw Object.assign(new Error(answer.error?.message), { status: response.status, error: answer.error });
    },
  });

describe.each([
  ['of the AI SDK', overHttp((url) => createAiSdkEmbedder(model(url)))],
  ['of a program', overHttp(own)],
])('an embedder %s', (_, make) => {
  for (const { group, name, ...rest } of embedderConformance(make))
    test(`${group}: ${name}`, () => rest.run());
});

const { signal } = new AbortController();

test('a request of the AI SDK holds no more texts than its model takes', async () => {
  const sent: number[] = [];
  const few: AiSdkEmbeddingModel & { maxEmbeddingsPerCall: Promise<number> } = {
    specificationVersion: 'v4',
    provider: 'few',
    modelId: 'm',
    maxEmbeddingsPerCall: Promise.resolve(2),
    async doEmbed({ values }: { values: string[] }) {
      sent.push(values.length);
      return { embeddings: values.map(() => [1, 0]) };
    },
  };
  expect(await createAiSdkEmbedder(few).embed(['a', 'b', 'c', 'd', 'e'], { signal })).toHaveLength(5);
  expect(sent).toEqual([2, 2, 1]);
});

test.each([
  ['too few', [[1, 2]]],
  ['of two lengths', [[1, 2], [1]]],
  [
    'no numbers',
    [
      [1, 2],
      ['a', 'b'],
    ],
  ],
  ['no list', 'none'],
])('vectors that are %s are a failure', async (_, answer) => {
  const bad = defineEmbedder({ name: 'bad', model: 'm', read: () => Promise.resolve(answer as never) });
  await expect(bad.embed(['a', 'b'], { signal })).rejects.toMatchObject({
    code: 'provider_failed',
    message: expect.stringContaining('expected 2 vectors'),
  });
});

test('an embedder that never answers ends with its time', async () => {
  const hangs = defineEmbedder({
    name: 'hangs',
    model: 'm',
    timeoutMs: 20,
    read: () => new Promise(() => undefined),
  });
  await expect(hangs.embed(['a'], { signal })).rejects.toMatchObject({ code: 'provider_unreachable' });
});

describe('the definition', () => {
  const withEmbedder = (embedder: unknown) =>
    parseTroupe({ agents: [{ id: 'bo', provider: 'openai' }], context: { embedder } }).context.embedder;

  test('takes a model of the AI SDK and an own embedder', () => {
    const google = createGoogle({ apiKey: 'k' }).embedding('gemini-embedding-001');
    expect(withEmbedder({ provider: 'ai-sdk', model: google })).toMatchObject({ model: google });
    const embedder = own('http://127.0.0.1:1');
    expect(withEmbedder({ provider: 'custom', embedder })).toMatchObject({ embedder });
  });

  test('refuses what is none, and says what would be', () => {
    expect(() => withEmbedder({ provider: 'ai-sdk', model: 'small' })).toThrow(
      /context\.embedder\.model: is an embedding model of a package of the AI SDK/,
    );
    expect(() => withEmbedder({ provider: 'custom', embedder: 3 })).toThrow(
      /context\.embedder\.embedder: an embedder is made with defineEmbedder/,
    );
    expect(() => withEmbedder({ provider: 'mine' })).toThrow(
      /context\.embedder\.provider: is one of openai-compatible, ai-sdk, custom/,
    );
    const old = { specificationVersion: 'v2', provider: 'x', modelId: 'm', doEmbed: () => undefined };
    expect(() => withEmbedder({ provider: 'ai-sdk', model: old })).toThrow(/version v2 .* v4 is needed/);
  });
});
