import type Anthropic from '@anthropic-ai/sdk';
import { readMessageEvents } from './anthropic-events.ts';
import { anthropicBody } from './anthropic-messages.ts';
import { fetchOptions } from './connect-timeout.ts';
import { guardStream, type StreamWatch } from './guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';

export interface AnthropicOptions {
  /** Default https://api.anthropic.com; a trailing /v1 is dropped, as the SDK adds it. */
  baseUrl?: string;
  apiKey: string;
  /** Longest silence of the server, before and within an answer. Default 300,000 ms. */
  timeoutMs?: number;
}

const NAME = 'anthropic';

/** Anthropic's messages API. */
export function createAnthropic(options: AnthropicOptions): Provider {
  const { baseUrl = 'https://api.anthropic.com', apiKey, timeoutMs = 300_000 } = options;
  let client: Promise<Anthropic> | undefined;

  async function connect(): Promise<Anthropic> {
    const { Anthropic: Client } = await import('@anthropic-ai/sdk');
    return new Client({
      apiKey,
      baseURL: baseUrl.replace(/\/(v1\/?)?$/, ''),
      maxRetries: 0,
      timeout: timeoutMs,
      logLevel: 'off',
      fetchOptions: await fetchOptions(),
    });
  }

  async function* read(request: ModelRequest, { signal, touch }: StreamWatch): AsyncGenerator<ModelEvent> {
    client ??= connect();
    const { messages } = await client;
    const events = await messages.create(anthropicBody(request, NAME), { signal });
    touch();
    yield* readMessageEvents(events, request, NAME, touch);
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, caching: 'breakpoints' },
    stream: (request, { signal }) =>
      guardStream({
        signal,
        silenceMs: timeoutMs,
        read: (watch) => read(request, watch),
        secrets: [apiKey],
      }),
  };
}
