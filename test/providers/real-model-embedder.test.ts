import { expect } from 'vitest';
import { createOpenAiEmbedder } from '../../src/providers/openai/client.ts';
import { startLlamaServer } from '../services/llama-server.ts';
import { withRealModel } from './real-model-stage.ts';

withRealModel(
  'a real server’s vectors: one per text, in order, and the same for the same words',
  async (llama) => {
    await using server = await startLlamaServer(llama, {
      contextTokens: 2_048,
      more: { pooling: 'mean' },
      switches: ['--embeddings'],
    });
    const embedder = createOpenAiEmbedder({ baseUrl: server.url, apiKey: 'k', model: 'smollm2' });
    const { signal } = new AbortController();
    const texts = ['green tea', 'red apples', 'green tea', '', 'Grüße, 世界! 👩‍🚀'];
    const vectors = await embedder.embed(texts, { signal });
    expect(vectors).toHaveLength(texts.length);
    expect(new Set(vectors.map(({ length }) => length)).size).toBe(1);
    expect(vectors.flat().every(Number.isFinite)).toBe(true);
    const likeness = (a: number, b: number) =>
      (vectors[a] ?? []).reduce((sum, value, at) => sum + value * (vectors[b]?.[at] ?? 0), 0);
    // They have length 1. Batches are computed in other orders, so the last digits may differ.
    expect(likeness(0, 2)).toBeCloseTo(1, 3);
    expect(likeness(0, 1)).toBeLessThan(0.999);
  },
);
