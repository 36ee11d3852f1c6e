import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createOpenAiEmbedder } from '../../src/providers/openai/client.ts';
import { embedderConformance, type MakeEmbedder } from '../../packages/testing/src/embedder-conformance.ts';
import {
  createFakeEmbedder,
  fakeVector,
  startFakeOpenAi,
  type FakeReply,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { sceneServer } from '../support/scene-server.ts';

const overHttp: MakeEmbedder = async (scene) => {
  const { url, ...fixture } = await sceneServer(scene);
  return {
    ...fixture,
    embedder: createOpenAiEmbedder({ baseUrl: url, apiKey: 'key-of-test', model: 'm' }),
  };
};

const fake: MakeEmbedder = async (scene) => {
  if (scene === 'unreachable' || scene.error || scene.hang) return null;
  const embedder = createFakeEmbedder();
  return {
    embedder,
    requests: () => embedder.calls.length,
    arrived: () => Promise.reject(new Error('there is no vendor')),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
};

describe.each([
  ['openai', overHttp],
  ['fake', fake],
] as const)('the %s embedder', (_, make) => {
  for (const { group, name, ...rest } of embedderConformance(make))
    test(`${group}: ${name}`, () => rest.run());
});

describe('over HTTP', () => {
  let server: FakeServer;
  let reply: FakeReply = {};
  const { signal } = new AbortController();
  const embedder = (timeoutMs = 30_000) =>
    createOpenAiEmbedder({ baseUrl: server.url, apiKey: 'sk-secret-9', model: 'small', timeoutMs });
  const sent = () => server.requests.map(({ body }) => body as { input: string[] });

  beforeAll(async () => {
    server = await startFakeOpenAi(() => reply);
  });
  afterAll(() => server.close());
  beforeEach(() => {
    reply = {};
    server.requests.length = 0;
  });

  test('a request contains the model, the texts and the key, and asks for numbers', async () => {
    expect(await embedder().embed(['one', 'two'], { signal })).toEqual([
      fakeVector('one'),
      fakeVector('two'),
    ]);
    const [request] = server.requests;
    expect(request).toMatchObject({ method: 'POST', path: '/v1/embeddings' });
    expect(request?.body).toEqual({ model: 'small', input: ['one', 'two'], encoding_format: 'float' });
    expect(request?.headers).toMatchObject({ authorization: 'Bearer sk-secret-9' });
    expect(request?.headers).not.toHaveProperty('openai-organization');
  });

  test('no request contains more than 96 texts or half a megabyte of them', async () => {
    await embedder().embed(
      Array.from({ length: 200 }, () => 'short'),
      { signal },
    );
    expect(sent().map(({ input }) => input.length)).toEqual([96, 96, 8]);
    server.requests.length = 0;
    await embedder().embed(
      Array.from({ length: 50 }, () => 'long '.repeat(10_000)),
      { signal },
    );
    expect(sent().map(({ input }) => input.length)).toEqual([20, 20, 10]);
  });

  test('a text is cut between characters, and an empty one becomes a space', async () => {
    await embedder().embed(['', 'x'.repeat(30_000), '世'.repeat(30_000), `x${'👍'.repeat(30_000)}`], {
      signal,
    });
    const [empty, plain, wide, pairs] = sent()[0]?.input ?? [];
    expect(empty).toBe(' ');
    expect(plain).toBe('x'.repeat(24_000));
    expect(wide).toBe('世'.repeat(8_000));
    expect(pairs).toBe(`x${'👍'.repeat(5_999)}`);
  });

  const answer = (data: unknown): FakeReply => ({
    raw: { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ data }) },
  });

  test('vectors are ordered by their index', async () => {
    reply = answer([
      { index: 1, embedding: [0, 1] },
      { index: 0, embedding: [1, 0] },
    ]);
    expect(await embedder().embed(['a', 'b'], { signal })).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  test.each([
    ['too few vectors', [{ index: 0, embedding: [1, 0] }]],
    [
      'vectors of two lengths',
      [
        { index: 0, embedding: [1, 0] },
        { index: 1, embedding: [1] },
      ],
    ],
    [
      'an empty vector',
      [
        { index: 0, embedding: [] },
        { index: 1, embedding: [] },
      ],
    ],
    [
      'text instead of numbers',
      [
        { index: 0, embedding: 'AAAA' },
        { index: 1, embedding: 'AAAA' },
      ],
    ],
    ['nothing', undefined],
    ['null', [null, null]],
  ])('%s is a failure', async (_, data) => {
    reply = answer(data);
    await expect(embedder().embed(['a', 'b'], { signal })).rejects.toMatchObject({ code: 'provider_failed' });
  });

  test('vectors of another length than in the last call are a failure', async () => {
    const same = embedder();
    await same.embed(['a'], { signal });
    reply = answer([{ index: 0, embedding: [1, 0] }]);
    await expect(same.embed(['a'], { signal })).rejects.toMatchObject({ code: 'provider_failed' });
  });

  test('a silent server times out', async () => {
    reply = { hang: true };
    await expect(embedder(50).embed(['a'], { signal })).rejects.toMatchObject({
      code: 'provider_unreachable',
    });
  });

  test('the delay that the server names is kept, and the key is not', async () => {
    reply = { error: { code: 'provider_rate_limited', retryAfter: '7', message: 'slow down, sk-secret-9' } };
    await expect(embedder().embed(['a'], { signal })).rejects.toMatchObject({
      code: 'provider_rate_limited',
      message: '429 slow down, [key]',
      data: { retryAfterMs: 7_000, embedder: 'openai-embedder', model: 'small' },
    });
  });
});
