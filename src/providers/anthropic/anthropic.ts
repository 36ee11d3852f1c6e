import type Anthropic from '@anthropic-ai/sdk';
import { anthropicBody, signatureOf } from './messages.ts';
import { readMessageEvents } from '../message-stream.ts';
import { COMMON_KEYS, PLAIN_TOOLS, type ToolRules, wholeToolSchema } from '../tool-schema.ts';
import { toolProblem } from '../fit-tools.ts';
import { readEventStream } from '../event-stream.ts';
import { foreignHeaders, serverOf, vendorFetch } from '../vendor-fetch.ts';
import { type SchemaForm, shownSchema } from '../plain-schema.ts';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { replyLimits, type ReplyLimitSettings } from '../reply-limits.ts';
import { NO_EXTRAS, type RequestExtras, givenOf, type Sampling } from '../request-settings.ts';
import type { AnthropicFields } from '../settings.ts';
import { ANTHROPIC, isFound, loadWith } from '../../base/optional-packages.ts';

interface AnthropicOptions extends AnthropicFields {
  /** Default https://api.anthropic.com. A trailing /v1 is dropped, because the SDK adds it. */
  baseUrl?: string;
  apiKey: string;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
  sampling?: Sampling;
  extras?: RequestExtras;
}

const NAME = 'anthropic';
const READER = { provider: NAME, signatureOf };
/** The speaker labels of Anthropic's older API, and tags that its models know from Claude Code. */
const MARKS = ['speakers', 'clients'] as const;

/**
 * The errors for other schemas: "input_schema does not support oneOf, allOf, or anyOf at the top level", "Property keys should
 * match pattern", "JSON schema is invalid. It must match JSON Schema draft 2020-12". See
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview
 */
const CLAUDE_TOOLS: ToolRules = { shape: wholeToolSchema, keys: COMMON_KEYS };

export function createAnthropic(options: AnthropicOptions): Provider {
  const { baseUrl = 'https://api.anthropic.com', apiKey, extras = NO_EXTRAS } = options;
  const limits = replyLimits(options.replyLimits);
  const isForeign = serverOf(baseUrl).address !== 'api.anthropic.com';
  // Servers that stand in for Anthropic's, such as llama.cpp, compile the schemas of tools to grammars.
  const schemas = isForeign ? 'plain' : 'whole';
  const tools = isForeign ? PLAIN_TOOLS : CLAUDE_TOOLS;
  let client: Promise<Anthropic> | undefined;

  async function connect(): Promise<Anthropic> {
    const { Anthropic: Client } = await loadAnthropicSdk();
    return new Client({
      apiKey,
      baseURL: baseUrl.replace(/\/(v1\/?)?$/, ''),
      maxRetries: 0,
      timeout: limits.silenceMs,
      logLevel: 'off',
      fetch: vendorFetch(limits),
      // Without this the SDK sends headers from the environment to any server.
      ...(isForeign && {
        defaultHeaders: foreignHeaders('ANTHROPIC_CUSTOM_HEADERS', { 'x-api-key': apiKey }),
      }),
    });
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    client ??= connect();
    const { messages } = await client;
    const params = anthropicParams(request, options);
    if (request.replySchema) {
      const format = await replyFormat(request.replySchema, schemas);
      if ('failed' in format) return yield format.failed;
      params.output_config = { ...params.output_config, format };
    }
    // The SDK has these parameters only in its beta types, but sends them unchanged.
    const sampled = anthropicSampling(options.sampling ?? {}, request);
    const body = Object.assign(
      anthropicBody(request, NAME, isForeign),
      params as object,
      sampled,
      extras.body,
    );
    const asked = messages.create(body, { signal: watch.signal, headers: headersOf(params, extras) });
    // The SDK's own reader skips events without a name, a last event without an empty line after it, and whole messages.
    const response = await asked.asResponse();
    watch.touch();
    yield* readMessageEvents(readEventStream(response), request, READER, watch);
  }

  return {
    name: NAME,
    capabilities: {
      ...STATELESS,
      images: true,
      caching: 'breakpoints',
      templateMarks: MARKS,
    },
    server: serverOf(baseUrl),
    toolProblem: (tool) => toolProblem(tool, tools),
    stream: guardedStream({
      name: NAME,
      limits,
      secrets: [apiKey, ...extras.secrets],
      templateMarks: MARKS,
      tools,
      read,
    }),
  };
}

/** The SDK's types no longer have the first two, which other servers accept. */
function anthropicSampling({ temperature, topP, stop }: Sampling, { trace }: ModelRequest): object {
  const stops = trace.purpose === 'compaction' ? undefined : stop;
  return givenOf({ temperature, top_p: topP, stop_sequences: stops });
}

/** The schema in Anthropic's dialect: objects allow no further fields, and unsupported keywords move into the description. */
async function replyFormat(
  schema: Record<string, unknown>,
  form: SchemaForm,
): Promise<Anthropic.JSONOutputFormat | { failed: ModelEvent }> {
  const { transformJSONSchema } = await loadAnthropicSdk();
  try {
    return { type: 'json_schema', schema: transformJSONSchema(shownSchema(schema, form)) };
  } catch (thrown) {
    const message = `the schema of the reply does not suit Anthropic: ${String(thrown)}`;
    return { failed: { type: 'failed', error: { code: 'provider_invalid_request', message } } };
  }
}

/** Parameters of a request besides messages and tools. Some are beta features of the vendor. */
interface AnthropicParams {
  thinking?: Anthropic.Beta.BetaThinkingConfigParam;
  output_config?: Anthropic.OutputConfig;
}

/**
 * For these models the vendor checks that nothing before a thinking block has changed, and refuses the request if it
 * has. Our prompts change when outputs are pruned or a compaction replaces messages, so the block must be omitted
 * then. These models think adaptively whether asked to or not.
 */
const BINDS_THINKING =
  /claude-(?:(?:fable|mythos)-5[-.][1-9]|(?:opus|sonnet|haiku)-5[-.][5-9]|[a-z]+-[6-9])(?!\d)/;
const BINDING = { block_binding: { prefix_mismatch_behavior: 'drop_block' } } as const;
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Adds the beta features that the agent asks for to those that the parameters need. */
function headersOf(params: AnthropicParams, { headers }: RequestExtras): Record<string, string> {
  const { 'anthropic-beta': beta } = betasOf(params);
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const betas = [beta, own['anthropic-beta']].filter((each) => each !== undefined);
  return { ...own, ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }) };
}

/** The header of the beta features that these parameters use. */
function betasOf({ thinking }: AnthropicParams): { 'anthropic-beta'?: string } {
  return thinking && 'block_binding' in thinking ? { 'anthropic-beta': BINDING_BETA } : {};
}

function anthropicParams({ model, maxOutputTokens }: ModelRequest, fields: AnthropicFields): AnthropicParams {
  const { thinking, effort } = fields;
  const params: AnthropicParams = {};
  const binds = BINDS_THINKING.test(model);
  const binding = binds ? BINDING : {};
  // A short answer, such as a summary, leaves no room for the budget: the vendor requires it to be lower.
  if (typeof thinking === 'number' && thinking < maxOutputTokens)
    params.thinking = { type: 'enabled', budget_tokens: thinking, ...binding };
  else if (thinking === 'adaptive' || binds) params.thinking = { type: 'adaptive', ...binding };
  if (effort) params.output_config = { effort };
  return params;
}

/** Anthropic's SDK. Throws `package_missing`. */
async function loadAnthropicSdk() {
  return await loadWith(ANTHROPIC, async () => {
    const [{ Anthropic }, { transformJSONSchema }] = await Promise.all([
      import('@anthropic-ai/sdk'),
      import('@anthropic-ai/sdk/lib/transform-json-schema'),
    ]);
    return { Anthropic, transformJSONSchema };
  });
}

/** Checks that the SDK is there, usually without loading it. Throws `package_missing`. */
export async function requireAnthropicSdk(): Promise<void> {
  if (!isFound('@anthropic-ai/sdk')) await loadAnthropicSdk();
}
