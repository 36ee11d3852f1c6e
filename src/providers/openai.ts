import type OpenAI from 'openai';
import { fetchOptions } from './connect-timeout.ts';
import { guardStream, type StreamWatch } from './guard-stream.ts';
import { readResponseEvents } from './openai-responses-events.ts';
import { responsesBody } from './openai-responses-input.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';

export interface OpenAiOptions {
  /** Default https://api.openai.com/v1. */
  baseUrl?: string;
  apiKey: string;
  /** Longest silence of the server, before and within an answer. Default 300,000 ms. */
  timeoutMs?: number;
}

const NAME = 'openai';

/** OpenAI's Responses API, without its memory: the log is the memory. */
export function createOpenAi(options: OpenAiOptions): Provider {
  const { baseUrl = 'https://api.openai.com/v1', apiKey, timeoutMs = 300_000 } = options;
  let client: Promise<OpenAI> | undefined;

  async function connect(): Promise<OpenAI> {
    const { OpenAI: Client } = await import('openai');
    return new Client({
      apiKey,
      baseURL: baseUrl,
      maxRetries: 0,
      timeout: timeoutMs,
      logLevel: 'off',
      fetchOptions: await fetchOptions(),
    });
  }

  async function* read(request: ModelRequest, { signal, touch }: StreamWatch): AsyncGenerator<ModelEvent> {
    client ??= connect();
    const { responses } = await client;
    const events = await responses.create(responsesBody(request, NAME), { signal });
    touch();
    yield* readResponseEvents(events, request, NAME, touch);
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, interleavedSystem: true, images: true },
    stream: (request, { signal }) =>
      guardStream({
        signal,
        silenceMs: timeoutMs,
        read: (watch) => read(request, watch),
        secrets: [apiKey],
      }),
  };
}
