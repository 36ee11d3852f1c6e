import type OpenAI from 'openai';
import { fetchOptions } from './connect-timeout.ts';
import { guardStream, type StreamWatch } from './guard-stream.ts';
import { readChunks } from './openai-chunks.ts';
import { openAiBody } from './openai-messages.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';
import { type ReplyLimitSettings, replyLimits } from './reply-limits.ts';
import { serverOf } from './server-of.ts';
import { vendorFetch } from './vendor-fetch.ts';
import { type ChatQuirks, quirksOf } from './vendor-quirks.ts';

export interface OpenAiCompatibleOptions {
  name?: string;
  baseUrl: string;
  apiKey: string;
  /** How much is taken of an answer, and for how long. */
  replyLimits?: ReplyLimitSettings;
  /** Changes what is known of the host. */
  quirks?: ChatQuirks;
}

/** Any server that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, OpenRouter and the like. */
export function createOpenAiCompatible(options: OpenAiCompatibleOptions): Provider {
  const { name = 'openai-compatible', baseUrl, apiKey } = options;
  const quirks = quirksOf(baseUrl, options.quirks);
  const isOpenAi = new URL(baseUrl).hostname === 'api.openai.com';
  const limits = replyLimits(options.replyLimits);
  let client: Promise<OpenAI> | undefined;

  async function connect(): Promise<OpenAI> {
    const { OpenAI: Client } = await import('openai');
    return new Client({
      apiKey,
      baseURL: baseUrl,
      maxRetries: 0,
      timeout: limits.silenceMs,
      logLevel: 'off',
      fetch: vendorFetch(limits),
      fetchOptions: await fetchOptions(),
      // Else read from the environment, and told to whatever server this is.
      ...(isOpenAi ? {} : { organization: null, project: null }),
    });
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    client ??= connect();
    const { chat } = await client;
    const chunks = await chat.completions.create(openAiBody(request, quirks, name), { signal: watch.signal });
    watch.touch();
    yield* readChunks(chunks, request, name, watch);
  }

  return {
    name,
    capabilities: {
      ...STATELESS,
      interleavedSystem: quirks.interleavedSystem ?? false,
      images: quirks.images ?? false,
    },
    server: serverOf(baseUrl),
    stream: (request, { signal }) =>
      guardStream({
        request,
        signal,
        limits,
        read: (watch) => read(request, watch),
        secrets: [apiKey],
      }),
  };
}
