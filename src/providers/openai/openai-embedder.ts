import type OpenAI from 'openai';
import type { Embedder } from '../embedder.ts';
import { guardedEmbedder, MAX_INPUTS } from '../guard-embedder.ts';
import { replyLimits } from '../reply-limits.ts';
import { openAiClient } from './client.ts';

interface OpenAiEmbedderOptions {
  name?: string;
  baseUrl: string;
  apiKey: string;
  model: string;
  /** Time for one request, up to the last byte of its response. Default 30,000 ms. */
  timeoutMs?: number;
}

/** Response size per input: vectors have thousands of numbers, of some twenty characters each. */
const MAX_VECTOR_BYTES = 262_144;

/** Any server with OpenAI's `/v1/embeddings`. */
export function createOpenAiEmbedder(options: OpenAiEmbedderOptions): Embedder {
  const { name = 'openai-embedder', baseUrl, apiKey, model, timeoutMs } = options;
  const limits = replyLimits({ receivedBytes: MAX_INPUTS * MAX_VECTOR_BYTES });
  const client = openAiClient({ apiKey, baseUrl, limits, streams: false });
  return guardedEmbedder({
    name,
    model,
    timeoutMs,
    secrets: [apiKey],
    async read(input, signal) {
      // Named, because some servers would otherwise answer in base64.
      const body = { model, input, encoding_format: 'float' };
      const answer = (await client.request('/embeddings', body, signal)) as OpenAI.CreateEmbeddingResponse;
      // Servers that only resemble OpenAI's may answer with anything.
      const data = Array.isArray(answer?.data) ? answer.data : [];
      return data
        .toSorted((one, other) => (one.index ?? 0) - (other.index ?? 0))
        .map(({ embedding }) => embedding);
    },
  });
}
