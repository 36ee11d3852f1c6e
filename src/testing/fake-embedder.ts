import { createHash } from 'node:crypto';
import { TroupeError } from '../errors.ts';
import type { Embedder } from '../providers/embedder.ts';

const DIMENSIONS = 64;

/** A vector that depends on the words alone: texts that share words are near each other. Never of length zero. */
export function fakeVector(text: string): number[] {
  const vector = Array.from({ length: DIMENSIONS }, () => 0);
  for (const word of ['', ...(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]) {
    const [place = 0, size = 0] = createHash('sha256').update(word).digest();
    const at = place % DIMENSIONS;
    vector[at] = (vector[at] ?? 0) + (word === '' ? 0.01 : 1 + size / 256);
  }
  return vector;
}

export interface FakeEmbedder extends Embedder {
  /** The texts of every call so far. */
  calls: (readonly string[])[];
}

/** An embedder without a server. `before` runs in every call and may wait or throw. */
export function createFakeEmbedder(
  before: (texts: readonly string[], signal: AbortSignal) => Promise<void> | void = () => undefined,
): FakeEmbedder {
  const calls: (readonly string[])[] = [];
  return {
    name: 'fake',
    model: 'hash',
    calls,
    async embed(texts, { signal }) {
      if (signal.aborted) throw new TroupeError('aborted', 'the embedding was aborted');
      if (texts.length === 0) return [];
      calls.push(texts);
      await before(texts, signal);
      return texts.map(fakeVector);
    },
  };
}
