import { TroupeError } from '../base/errors.ts';
import { boundedFetch } from './define-provider.ts';
import { classifyFailure, shownMessage, vendorErrorOf } from './classify-failure.ts';
import { ownFailure } from './vendor-fetch.ts';

/**
 * The embedder port: texts in, vectors out, for search by meaning.
 * - One vector per text, in order, all of one length across calls. Every text has a vector, even an empty one. No
 *   texts, no request.
 * - A text longer than the model's limit is cut, never refused.
 * - A failure rejects with a TroupeError of a provider code, or `aborted` when `signal` aborts.
 * - Adapters never retry: the caller decides that.
 */
export interface Embedder {
  /** Shown to people and in metrics. */
  readonly name: string;
  /** Name of the model. */
  readonly model: string;
  /** The vectors of texts, in their order. */
  embed(texts: readonly string[], options: { signal: AbortSignal }): Promise<readonly (readonly number[])[]>;
}

/** A model for vectors that a program brings. */
export interface EmbedderDefinition {
  /** Shown to people and in errors. */
  name: string;
  /** Name of the model. */
  model: string;
  /** Keys, which are removed from error messages: vendors may repeat them. */
  secrets?: readonly string[] | undefined;
  /** Time for one call of `read`, in ms. Default 30,000. */
  timeoutMs?: number | undefined;
  /** Most texts of one call. Default and most: 96. */
  maxTexts?: number | undefined;
  /**
   * One vector for each text, in their order, all of one length. No text is empty, and each is cut to 24,000 bytes. An error
   * that it throws becomes the failure of the call, by its `status` and `headers` as for `defineProvider`. `fetch` is bounded.
   */
  read(
    texts: readonly string[],
    call: { signal: AbortSignal; fetch: typeof fetch },
  ): PromiseLike<readonly (readonly number[])[]>;
}

/**
 * Makes an embedder from a program's own model, for `context: { embedder: { provider: 'custom', embedder: mine } }`.
 *
 *     const mine = defineEmbedder({ name: 'mine', model: 'small', read: (texts) => vectorsOf(texts) });
 */
export function defineEmbedder(definition: EmbedderDefinition): Embedder {
  const { name, model, secrets, timeoutMs, maxTexts } = definition;
  if (typeof definition.read !== 'function')
    throw new TroupeError(
      'config_invalid',
      `the embedder "${name}" needs read: async (texts, { signal }) => vectors`,
    );
  const fetch = boundedFetch();
  return guardedEmbedder({
    name,
    model,
    secrets,
    timeoutMs,
    ...(maxTexts !== undefined && { maxInputs: () => Promise.resolve(maxTexts) }),
    read: (texts, signal) => definition.read(texts, { signal, fetch }),
  });
}

interface EmbedderReader {
  name: string;
  model: string;
  /** Texts that are removed from messages. */
  secrets?: readonly string[] | undefined;
  /** Time for one request, up to the last byte of its response. Default 30,000 ms. */
  timeoutMs?: number | undefined;
  /** Most texts of one request. Default and most: 96. */
  maxInputs?: (() => Promise<number | undefined>) | undefined;
  /** One vector for each text, in order. The result is checked. May throw anything. */
  read(texts: string[], signal: AbortSignal): PromiseLike<unknown>;
}

/** Servers refuse a request with more inputs. */
export const MAX_INPUTS = 96;
/** About 8,000 tokens, the usual limit of one input: prose in any script has at least three bytes per token. */
const MAX_INPUT_BYTES = 24_000;
/** About half of the tokens that OpenAI accepts in one request, because keys and numbers have fewer bytes per token. */
const MAX_REQUEST_BYTES = 480_000;

/** Holds a reader to the contract of the embedder port, whatever its vendor does. */
export function guardedEmbedder(reader: EmbedderReader): Embedder {
  const { name, model, secrets = [], timeoutMs = 30_000, maxInputs } = reader;
  const facts = { embedder: name, model };
  let dimensions: number | null = null;

  async function request(texts: string[], signal: AbortSignal): Promise<readonly number[][]> {
    const timeout = AbortSignal.timeout(timeoutMs);
    const ended = AbortSignal.any([signal, timeout]);
    const interrupted = Promise.withResolvers<never>();
    const interrupt = () => interrupted.reject(ended.reason);
    ended.addEventListener('abort', interrupt, { once: true });
    try {
      ended.throwIfAborted();
      // Raced, because packages may not pass the signal on.
      return vectorsOf(await Promise.race([reader.read(texts, ended), interrupted.promise]), texts.length);
    } catch (thrown) {
      throw failureOf(thrown, signal, timeout);
    } finally {
      ended.removeEventListener('abort', interrupt);
    }
  }

  function failureOf(thrown: unknown, signal: AbortSignal, timeout: AbortSignal): TroupeError {
    if (signal.aborted) return new TroupeError('aborted', 'the embedding was aborted', facts);
    const own = ownFailure(thrown);
    if (own) return new TroupeError(own.code, shownMessage(own.message, secrets), { ...own.data, ...facts });
    if (timeout.aborted)
      return new TroupeError('provider_unreachable', `no answer was received for ${timeoutMs} ms`, facts);
    const vendor = vendorErrorOf(thrown);
    const { code, message, retryAfterMs } = classifyFailure(vendor, {
      opened: false,
      now: Date.now(),
      secrets,
    });
    return new TroupeError(code, message, retryAfterMs === undefined ? facts : { ...facts, retryAfterMs });
  }

  function vectorsOf(answer: unknown, wanted: number): number[][] {
    const vectors: unknown[] = Array.isArray(answer) ? answer : [];
    const [first] = vectors;
    const length = dimensions ?? (isVector(first) ? first.length : 0);
    const sound = vectors.filter(isVector).filter((vector) => vector.length === length);
    if (sound.length !== wanted || vectors.length !== wanted) {
      const message = `expected ${wanted} vectors of ${length} numbers, got ${describe(vectors)}`;
      throw new TroupeError('provider_failed', message, facts);
    }
    dimensions = length;
    return sound;
  }

  return {
    name,
    model,
    async embed(texts, { signal }) {
      if (texts.length === 0) return [];
      const most = Math.max(1, Math.min(MAX_INPUTS, (await maxInputs?.()) ?? MAX_INPUTS));
      const vectors: (readonly number[])[] = [];
      for (const batch of batchesOf(texts.map(fitInput), most))
        vectors.push(...(await request(batch, signal)));
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

function isContinuation(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000;
}

function batchesOf(inputs: readonly string[], maxInputs: number): string[][] {
  const batches: string[][] = [];
  let bytes = 0;
  for (const input of inputs) {
    const size = Buffer.byteLength(input);
    const batch = batches.at(-1);
    if (batch && batch.length < maxInputs && bytes + size <= MAX_REQUEST_BYTES) {
      batch.push(input);
      bytes += size;
    } else {
      batches.push([input]);
      bytes = size;
    }
  }
  return batches;
}
