import type Anthropic from '@anthropic-ai/sdk';
import { readMessageEvents } from './anthropic-events.ts';
import { anthropicBody } from './anthropic-messages.ts';
import { anthropicParams, betasOf } from './anthropic-params.ts';
import { fetchOptions } from './connect-timeout.ts';
import { guardStream, type StreamWatch } from './guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';
import { type ReplyLimitSettings, replyLimits } from './reply-limits.ts';
import { serverOf } from './server-of.ts';
import { vendorFetch } from './vendor-fetch.ts';
import type { AnthropicFields } from './settings.ts';

export interface AnthropicOptions extends AnthropicFields {
  /** Default https://api.anthropic.com; a trailing /v1 is dropped, as the SDK adds it. */
  baseUrl?: string;
  apiKey: string;
  /** How much is taken of an answer, and for how long. */
  replyLimits?: ReplyLimitSettings;
}

const NAME = 'anthropic';

/** Anthropic's messages API. */
export function createAnthropic(options: AnthropicOptions): Provider {
  const { baseUrl = 'https://api.anthropic.com', apiKey, contextEditing } = options;
  const limits = replyLimits(options.replyLimits);
  let client: Promise<Anthropic> | undefined;

  async function connect(): Promise<Anthropic> {
    const { Anthropic: Client } = await import('@anthropic-ai/sdk');
    return new Client({
      apiKey,
      baseURL: baseUrl.replace(/\/(v1\/?)?$/, ''),
      maxRetries: 0,
      timeout: limits.silenceMs,
      logLevel: 'off',
      fetch: vendorFetch(limits),
      fetchOptions: await fetchOptions(),
    });
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    client ??= connect();
    const { messages } = await client;
    const params = anthropicParams(request, options);
    if (request.replySchema) {
      const format = await replyFormat(request.replySchema);
      if ('failed' in format) return yield format.failed;
      params.output_config = { ...params.output_config, format };
    }
    // The SDK knows what is in test elsewhere only, and sends it as it is.
    const body = Object.assign(anthropicBody(request, NAME), params as object);
    const events = await messages.create(body, { signal: watch.signal, headers: betasOf(params) });
    watch.touch();
    yield* readMessageEvents(events, request, NAME, watch);
  }

  return {
    name: NAME,
    // What is counted after the vendor's edits is not what was sent.
    capabilities: { ...STATELESS, images: true, caching: 'breakpoints', reportsUsage: !contextEditing },
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

/** The schema as Anthropic takes it: no open objects, and keywords that it does not know in the description. */
async function replyFormat(
  schema: Record<string, unknown>,
): Promise<Anthropic.JSONOutputFormat | { failed: ModelEvent }> {
  const { transformJSONSchema } = await import('@anthropic-ai/sdk/lib/transform-json-schema');
  try {
    return { type: 'json_schema', schema: transformJSONSchema(schema) };
  } catch (thrown) {
    const message = `the schema of the reply does not suit Anthropic: ${String(thrown)}`;
    return { failed: { type: 'failed', error: { code: 'provider_invalid_request', message } } };
  }
}
