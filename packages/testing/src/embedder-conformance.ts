import assert from 'node:assert/strict';
import { type ErrorCode, TroupeError, type Embedder } from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';
import type { FakeReply } from './fake-vendors.ts';

/** An embedder whose vendor follows the scene; with an empty scene it answers each text with a vector of its words. */
export interface EmbedderFixture extends AsyncDisposable {
  /** The embedder under test. */
  embedder: Embedder;
  /** Number of requests the vendor has received. */
  requests: () => number;
  /** Resolves when the vendor has received the first request. */
  arrived: () => Promise<{ gone: Promise<void> }>;
}

/** `unreachable`: no vendor listens. */
export type EmbedderScene = Pick<FakeReply, 'error' | 'hang' | 'delayMs'> | 'unreachable';

/** Null if the scene does not apply to the adapter: its cases then pass unrun. */
export type MakeEmbedder = (scene: EmbedderScene) => Promise<EmbedderFixture | null>;

const CODES = [
  'provider_auth',
  'provider_quota',
  'provider_model_unknown',
  'provider_invalid_request',
  'provider_rate_limited',
  'provider_overloaded',
  'provider_failed',
  'context_overflow',
] as const;

/** The contract of an embedder of any vendor. `make` is called once per case. */
export function embedderConformance(make: MakeEmbedder): ConformanceCase[] {
  const on = (
    group: string,
    name: string,
    scene: EmbedderScene,
    run: (fixture: EmbedderFixture) => Promise<void>,
  ): ConformanceCase => ({
    group,
    name,
    async run() {
      await using fixture = await make(scene);
      if (fixture) await run(fixture);
    },
  });

  return [
    on('vectors', 'every text has a vector, in order', {}, async ({ embedder }) => {
      const [red, green] = [await one(embedder, 'red apples'), await one(embedder, 'green tea')];
      assert.notDeepEqual(red, green);
      const texts = ['green tea', 'red apples', 'green tea'];
      assert.deepEqual(await all(embedder, texts), [green, red, green]);
    }),
    on('vectors', 'all have one length and finite numbers', {}, async ({ embedder }) => {
      const vectors = await all(embedder, ['one', 'Grüße, 世界! 👩‍🚀', 'three words here']);
      assert.equal(new Set(vectors.map(({ length }) => length)).size, 1);
      assert.ok(vectors.every((vector) => vector.length > 0 && vector.every(Number.isFinite)));
    }),
    on('vectors', 'many texts arrive in order', {}, async ({ embedder }) => {
      const texts = Array.from({ length: 250 }, (_, index) => `number${index} of many`);
      const vectors = await all(embedder, texts);
      assert.equal(vectors.length, texts.length);
      for (const index of [0, 95, 96, 191, 192, 249]) {
        assert.deepEqual(vectors[index], await one(embedder, texts[index] ?? ''));
      }
    }),
    on('vectors', 'no texts need no request', {}, async ({ embedder, requests }) => {
      assert.deepEqual(await all(embedder, []), []);
      assert.equal(requests(), 0);
    }),
    on('vectors', 'empty, broken and very long texts have vectors too', {}, async ({ embedder }) => {
      const texts = ['', 'half \ud83d of a pair', 'word '.repeat(100_000), '世界👍'.repeat(50_000)];
      assert.equal((await all(embedder, texts)).length, texts.length);
    }),
    on('aborts', 'an abort before the call sends nothing', {}, async ({ embedder, requests }) => {
      await rejects(embedder.embed(['x'], { signal: AbortSignal.abort() }), 'aborted');
      assert.equal(requests(), 0);
    }),
    on('aborts', 'an abort ends the request', { hang: true }, async ({ embedder, arrived }) => {
      const controller = new AbortController();
      const refused = rejects(embedder.embed(['x'], { signal: controller.signal }), 'aborted');
      const seen = await arrived();
      controller.abort();
      await refused;
      await seen.gone;
    }),
    on('failures', 'a vendor that is down is unreachable', 'unreachable', async ({ embedder }) => {
      await rejects(all(embedder, ['x']), 'provider_unreachable');
    }),
    ...CODES.map((code) =>
      on('failures', `${code} is recognized`, { error: { code } }, async ({ embedder, requests }) => {
        await rejects(all(embedder, ['x']), code);
        assert.equal(requests(), 1, 'the adapter retried');
      }),
    ),
  ];
}

function all(embedder: Embedder, texts: readonly string[]): Promise<readonly (readonly number[])[]> {
  return embedder.embed(texts, { signal: new AbortController().signal });
}

async function one(embedder: Embedder, text: string): Promise<readonly number[]> {
  const [vector] = await all(embedder, [text]);
  assert.ok(vector, 'no vector was returned');
  return vector;
}

async function rejects(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  await assert.rejects(work, (thrown) => {
    assert.ok(thrown instanceof TroupeError, `not a TroupeError: ${String(thrown)}`);
    assert.equal(thrown.code, code);
    assert.notEqual(thrown.message, '');
    return true;
  });
}
