import type OpenAI from 'openai';
import { isFound, loadWith, OPENAI } from '../../base/optional-packages.ts';
import { readEventStream } from '../event-stream.ts';
import { foreignHeaders, vendorFetch } from '../vendor-fetch.ts';
import { type ReplyLimits, replyLimits } from '../reply-limits.ts';
import { isOpenAi } from '../quirks.ts';
import { type Embedder, guardedEmbedder, MAX_INPUTS } from '../embedder.ts';

interface ClientOptions {
  apiKey: string;
  baseUrl: string;
  limits: ReplyLimits;
  /** Whether answers are streams, whose single events are then bounded too. Default true. */
  streams?: boolean;
  /** Headers of the agent's own. They replace others of the same name. */
  headers?: Record<string, string>;
}

/**
 * OpenAI's API through its SDK, which does authentication, the account from the environment, and errors with `status`,
 * `headers` and `error`. Troupe does retries, time limits and the reading of streams: the SDK's own reader fails on events of
 * servers that only resemble OpenAI's (see `../vendor-fetch.ts`). Answers are not validated.
 */
interface OpenAiClient {
  /** Resolves to the JSON of the answer. */
  request(path: string, body: object, signal: AbortSignal): Promise<unknown>;
  /** Resolves once the server has accepted the request, to the events of its answer. */
  stream<E>(path: string, body: object, signal: AbortSignal): Promise<AsyncIterable<E>>;
}

export function openAiClient(options: ClientOptions): OpenAiClient {
  const { apiKey, baseUrl, limits, streams = true, headers = {} } = options;
  let client: Promise<OpenAI> | undefined;

  async function connect(): Promise<OpenAI> {
    const { OpenAI: Client } = await loadOpenAiSdk();
    const isForeign = !isOpenAi(baseUrl);
    const own = { authorization: `Bearer ${apiKey}` };
    return new Client({
      apiKey,
      // Models do not need it, so it is never sent.
      adminAPIKey: null,
      baseURL: baseUrl.replace(/\/$/, ''),
      maxRetries: 0,
      timeout: limits.silenceMs,
      logLevel: 'off',
      fetch: vendorFetch(limits, { streams }),
      // Without this the SDK sends the account and the headers of the environment to any server.
      ...(isForeign && { organization: null, project: null }),
      defaultHeaders: { ...(isForeign && foreignHeaders('OPENAI_CUSTOM_HEADERS', own)), ...headers },
    });
  }

  async function post(path: string, body: object, signal: AbortSignal): Promise<Response> {
    client ??= connect();
    const sdk = await client;
    return sdk.post(path, { body, signal }).asResponse();
  }

  return {
    async request(path, body, signal) {
      return await (await post(path, body, signal)).json();
    },
    async stream(path, body, signal) {
      return readEventStream(await post(path, body, signal));
    },
  };
}

/** OpenAI's SDK. Throws `package_missing`. */
async function loadOpenAiSdk() {
  return await loadWith(OPENAI, () => import('openai'));
}

/** Checks that the SDK is installed, usually without loading it. Throws `package_missing`. */
export async function requireOpenAiSdk(): Promise<void> {
  if (!isFound('openai')) await loadOpenAiSdk();
}

interface OpenAiEmbedderOptions {
  name?: string;
  baseUrl: string;
  apiKey: string;
  model: string;
  /** Time for one request, up to the last byte of its response. Default 30,000 ms. */
  timeoutMs?: number;
}

/** Allowed size of the response per input: a vector has thousands of numbers, of about twenty characters each. */
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
      // Set, because some servers would otherwise answer in base64.
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
