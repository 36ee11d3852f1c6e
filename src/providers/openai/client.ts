import type OpenAI from 'openai';
import { isFound, loadWith, OPENAI } from '../../optional-packages.ts';
import { readEventStream } from '../event-stream.ts';
import { foreignHeaders, type VendorFetch } from '../vendor-fetch.ts';
import { isOpenAi } from './quirks.ts';

interface ClientOptions {
  apiKey: string;
  baseUrl: string;
  fetch: VendorFetch;
  /** Time in which the server must accept a request, ms. Default: that of the SDK. */
  timeoutMs?: number;
  /** Headers of the agent's own. They replace others of their name. */
  headers?: Record<string, string>;
}

/**
 * OpenAI's API, through its SDK: authentication, the account of the environment, and errors with `status`, `headers` and
 * `error`. Retries and time limits are ours, and so is the reading of streams: the SDK's own reader fails on events that
 * servers only resembling OpenAI's send (see `../event-stream.ts`). Answers are not validated.
 */
export interface OpenAiClient {
  /** Resolves to the JSON of the answer. */
  request(path: string, body: object, signal: AbortSignal): Promise<unknown>;
  /** Resolves once the server has accepted the request, to the events of its answer. */
  stream<E>(path: string, body: object, signal: AbortSignal): Promise<AsyncIterable<E>>;
}

export function openAiClient({
  apiKey,
  baseUrl,
  fetch,
  timeoutMs,
  headers = {},
}: ClientOptions): OpenAiClient {
  let client: Promise<OpenAI> | undefined;

  async function connect(): Promise<OpenAI> {
    const { OpenAI: Client } = await loadOpenAiSdk();
    // Otherwise the SDK sends the account and the headers of the environment to any server.
    const foreign = isOpenAi(baseUrl)
      ? null
      : {
          organization: null,
          project: null,
          headers: foreignHeaders('OPENAI_CUSTOM_HEADERS', { authorization: `Bearer ${apiKey}` }),
        };
    return new Client({
      apiKey,
      baseURL: baseUrl.replace(/\/$/, ''),
      maxRetries: 0,
      logLevel: 'off',
      fetch,
      ...(timeoutMs !== undefined && { timeout: timeoutMs }),
      ...(foreign && { organization: foreign.organization, project: foreign.project }),
      defaultHeaders: { ...foreign?.headers, ...headers },
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
