import type OpenAI from 'openai';
import { TroupeError } from '../../errors.ts';
import { classifyFailure, vendorErrorOf } from '../classify-failure.ts';
import { ownFailure, vendorFetch } from '../vendor-fetch.ts';
import { openAiClient } from './client.ts';
import type { Embedder } from '../embedder.ts';
import { replyLimits } from '../reply-limits.ts';

interface OpenAiEmbedderOptions {
  name?: string;
  baseUrl: string;
  apiKey: string;
  model: string;
  /** Time for one request, up to the last byte of its response. Default 30,000 ms. */
  timeoutMs?: number;
}

/** Servers refuse more inputs in one request. */
const MAX_INPUTS = 96;
/** About 8,000 tokens, the usual limit of one input: prose of any script has at least three bytes per token. */
const MAX_INPUT_BYTES = 24_000;
/** About half of the tokens that OpenAI takes in one request: keys and numbers have fewer bytes per token. */
const MAX_REQUEST_BYTES = 480_000;

/** Response size per input: vectors have thousands of numbers, of some twenty characters each. */
const MAX_VECTOR_BYTES = 262_144;

/** Any server with OpenAI's `/v1/embeddings`. */
export function createOpenAiEmbedder(options: OpenAiEmbedderOptions): Embedder {
  const { name = 'openai-embedder', baseUrl, apiKey, model, timeoutMs = 30_000 } = options;
  const limits = replyLimits({ receivedBytes: MAX_INPUTS * MAX_VECTOR_BYTES });
  const fetch = vendorFetch(limits, { streams: false });
  const client = openAiClient({ apiKey, baseUrl, fetch });
  let dimensions: number | null = null;

  async function request(input: string[], signal: AbortSignal): Promise<readonly number[][]> {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      // Named, because some servers would otherwise answer in base64.
      const body = { model, input, encoding_format: 'float' };
      const answer = await client.request('/embeddings', body, AbortSignal.any([signal, timeout]));
      return vectorsOf(answer as OpenAI.CreateEmbeddingResponse, input.length);
    } catch (thrown) {
      throw failureOf(thrown, signal, timeout);
    }
  }

  function failureOf(thrown: unknown, signal: AbortSignal, timeout: AbortSignal): TroupeError {
    const facts = { embedder: name, model };
    if (signal.aborted) return new TroupeError('aborted', 'the embedding was aborted', facts);
    const own = ownFailure(thrown);
    if (own) return new TroupeError(own.code, own.message, { ...own.data, ...facts });
    if (timeout.aborted) {
      return new TroupeError('provider_unreachable', `no answer was received for ${timeoutMs} ms`, facts);
    }
    const { code, message, retryAfterMs } = classifyFailure(vendorErrorOf(thrown), {
      opened: false,
      now: Date.now(),
      secrets: [apiKey],
    });
    return new TroupeError(code, message, retryAfterMs === undefined ? facts : { ...facts, retryAfterMs });
  }

  function vectorsOf(answer: OpenAI.CreateEmbeddingResponse, wanted: number): number[][] {
    // Servers that only resemble OpenAI's may answer with anything.
    const data = Array.isArray(answer?.data) ? answer.data : [];
    const vectors = data
      .toSorted((one, other) => (one.index ?? 0) - (other.index ?? 0))
      .map(({ embedding }) => embedding);
    const length = dimensions ?? vectors[0]?.length ?? 0;
    const isSound = vectors.every((vector) => isVector(vector) && vector.length === length);
    if (vectors.length !== wanted || !isSound) {
      const message = `expected ${wanted} vectors of ${length} numbers, got ${describe(vectors)}`;
      throw new TroupeError('provider_failed', message, { embedder: name, model });
    }
    dimensions = length;
    return vectors;
  }

  return {
    name,
    model,
    async embed(texts, { signal }) {
      const vectors: (readonly number[])[] = [];
      for (const batch of batchesOf(texts.map(fitInput))) vectors.push(...(await request(batch, signal)));
      return vectors;
    },
  };
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every(Number.isFinite);
}

function describe(vectors: readonly unknown[]): string {
  const lengths = vectors.map((vector) => (isVector(vector) ? `${vector.length}` : 'none'));
  return `${vectors.length} (${[...new Set(lengths)].slice(0, 3).join(', ')})`;
}

/** Servers refuse empty texts, and JSON cannot carry lone surrogates. */
function fitInput(text: string): string {
  if (text === '') return ' ';
  const bytes = Buffer.from(text.slice(0, MAX_INPUT_BYTES).toWellFormed());
  if (bytes.length <= MAX_INPUT_BYTES && text.length <= MAX_INPUT_BYTES) return text.toWellFormed();
  let end = Math.min(bytes.length, MAX_INPUT_BYTES);
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/** A continuation byte of UTF-8. */
function isContinuation(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000;
}

function batchesOf(inputs: readonly string[]): string[][] {
  const batches: string[][] = [];
  let bytes = 0;
  for (const input of inputs) {
    const size = Buffer.byteLength(input);
    const batch = batches.at(-1);
    if (batch && batch.length < MAX_INPUTS && bytes + size <= MAX_REQUEST_BYTES) {
      batch.push(input);
      bytes += size;
    } else {
      batches.push([input]);
      bytes = size;
    }
  }
  return batches;
}
