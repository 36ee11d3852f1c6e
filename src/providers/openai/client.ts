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
  /** Whether answers are streams, whose events are bounded too. Default true. */
  streams?: boolean;
  /** Headers of the agent's own. They replace others of their name. */
  headers?: Record<string, string>;
}

/**
 * OpenAI's API, through its SDK: authentication, the account of the environment, and errors with `status`, `headers` and
 * `error`. Retries and time limits are ours, and so is the reading of streams: the SDK's own reader fails on events that
 * servers only resembling OpenAI's send (see `../vendor-fetch.ts`). Answers are not validated.
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
      // Of no use for models, and never sent.
      adminAPIKey: null,
      baseURL: baseUrl.replace(/\/$/, ''),
      maxRetries: 0,
      timeout: limits.silenceMs,
      logLevel: 'off',
      fetch: vendorFetch(limits, { streams }),
      // Otherwise the SDK sends the account and the headers of the environment to any server.
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

/** Checks that the SDK is there, usually without loading it. Throws `package_missing`. */
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
