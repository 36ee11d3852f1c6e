import * as z from 'zod';
import { plainSchema } from './plain-schema.ts';
import {
  flatTop,
  isSchema,
  type Schema,
  targetOf,
  type ToolRules,
  PLAIN_TOOLS,
  wholeToolSchema,
} from './tool-schema.ts';

/**
 * Gemini reads schemas as its own `Schema`, https://ai.google.dev/api/caching#Schema, even behind chat completions. It refuses
 * a request for a list of types ("Proto field is not repeating, cannot start list"), for unknown keywords ("Unknown name"),
 * for an array without `items`, for a required property that is not defined, and for `enum` values that are not texts.
 */
const GEMINI_TOOLS: ToolRules = {
  shape(schema) {
    const flat = flatTop(plainSchema(schema));
    return flat && new GeminiSchema(flat).part(flat, 0);
  },
  keys: /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/,
};

const MAX_DEPTH = 32;
/** Most parts of a schema that are written out: references are replaced by their targets, and a schema may refer to itself. */
const MOST_PARTS = 2_000;
const NULL: unknown = 'null';
const ANYTHING = ['string', 'number', 'boolean', 'object'].map((type) => ({ type }));

class GeminiSchema {
  readonly #root: Schema;
  #parts = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  part(given: unknown, depth: number): Record<string, unknown> {
    this.#parts += 1;
    if (depth > MAX_DEPTH || this.#parts > MOST_PARTS) return { type: 'string' };
    const schema = this.#resolved(given);
    const { description } = schema;
    const said = typeof description === 'string' ? { description } : {};
    const choices = choicesOf(schema);
    const isNullable = choices.some(isNull);
    const left = choices.filter((each) => !isNull(each));
    const nullable = isNullable ? { nullable: true } : {};
    if (left.length > 1) {
      const anyOf = left.map((each) => this.part(each, depth + 1));
      // Gemini allows no other keyword beside alternatives.
      return { anyOf: anyOf.map((each, index) => (index === 0 ? { ...said, ...nullable, ...each } : each)) };
    }
    const only = isSchema(left[0]) ? { ...schema, ...left[0] } : schema;
    return { ...this.#typed(only, depth), ...said, ...nullable };
  }

  /** The parts of a schema that has one type. */
  #typed(schema: Schema, depth: number): Record<string, unknown> {
    const texts = textsOf(schema);
    if (texts) return { type: 'string', enum: texts };
    const type = typeOf(schema);
    if (type === null) return { anyOf: ANYTHING };
    if (type === 'array') return { type, items: this.part(schema['items'] ?? { type: 'string' }, depth + 1) };
    if (type !== 'object') return { type };
    const { properties, required } = schema;
    const entries = Object.entries(isSchema(properties) ? properties : {});
    if (entries.length === 0) return { type };
    const shown = Object.fromEntries(entries.map(([name, each]) => [name, this.part(each, depth + 1)]));
    const known = Array.isArray(required)
      ? required.filter((name) => typeof name === 'string' && Object.hasOwn(shown, name))
      : [];
    return { type, properties: shown, ...(known.length > 0 && { required: known }) };
  }

  /** Follows references, and merges `allOf`. */
  #resolved(given: unknown): Schema {
    let schema: Schema = isSchema(given) ? given : {};
    for (let step = 0; step < MAX_DEPTH && typeof schema['$ref'] === 'string'; step += 1) {
      const { $ref, ...rest } = schema;
      const target = targetOf(this.#root, $ref);
      schema = { ...(isSchema(target) ? target : {}), ...rest };
    }
    const { allOf } = schema;
    if (!Array.isArray(allOf)) return schema;
    const { allOf: _, ...rest } = schema;
    return {
      ...rest,
      ...flatTop({ ...rest, allOf }),
      ...(allOf.length === 1 && isSchema(allOf[0]) && this.#resolved(allOf[0])),
    };
  }
}

/** Alternatives, from `anyOf`, `oneOf` and a list of types. */
function choicesOf(schema: Schema): unknown[] {
  const { type, anyOf, oneOf } = schema;
  const choices = [anyOf, oneOf].flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : []));
  if (choices.length > 0) return choices;
  if (!Array.isArray(type)) return [];
  const { type: _, description: __, ...rest } = schema;
  return type.map((each: unknown) => (each === NULL ? { type: each } : { ...rest, type: each }));
}

function isNull(schema: unknown): boolean {
  return isSchema(schema) && (schema['type'] === NULL || ('const' in schema && schema['const'] === null));
}

/** The allowed values, if all of them are texts. */
function textsOf({ enum: values, const: value }: Schema): string[] | null {
  const all = Array.isArray(values) ? values.filter((each) => each !== null) : [value];
  return all.length > 0 && all.every((each) => typeof each === 'string' && each !== '')
    ? (all as string[])
    : null;
}

function typeOf({ type, properties, items, enum: values, const: value }: Schema): string | null {
  if (typeof type === 'string' && type !== NULL) return type;
  if (isSchema(properties)) return 'object';
  if (items !== undefined) return 'array';
  const [first] = Array.isArray(values) ? (values as unknown[]) : [value];
  return typeof first === 'number' || typeof first === 'boolean' ? typeof first : null;
}

/**
 * Differences of servers with a chat completions API. Omitted fields mean what most accept: one leading system
 * message, `max_tokens`, usage at the end of the stream, any call id, a plain JSON schema for the reply. The role
 * `developer` is never sent: most servers do not know it, and OpenAI accepts `system` instead.
 */
export interface ChatQuirks {
  /** Joins consecutive messages of one role, for chat templates that require strict alternation. Default false. */
  mergeConsecutive?: boolean | undefined;
  /** System messages may stand between others. Default false. */
  interleavedSystem?: boolean | undefined;
  /** Images are sent, as data URLs. Default false. */
  images?: boolean | undefined;
  /** Puts a short assistant message between a tool result and a user message. Default false. */
  assistantAfterTool?: boolean | undefined;
  /** Field of the limit of output tokens. Default `max_tokens`. */
  maxTokensField?: 'max_tokens' | 'max_completion_tokens' | undefined;
  /** Asks for usage at the end of the stream. Default true. */
  streamUsage?: boolean | undefined;
  /** Field of the cache key, which groups requests with a common prefix. Default: none is sent. */
  cacheKeyField?: 'prompt_cache_key' | 'session_id' | null | undefined;
  /** Form of the ids of calls. `nine`: exactly nine letters and digits. `forty`: at most 40 characters. Default `any`. */
  callIds?: 'any' | 'nine' | 'forty' | undefined;
  /** How the reply schema is sent: as a schema, as JSON mode with words in the prompt, or in words alone. Default `json_schema`. */
  replyFormat?: 'json_schema' | 'json_object' | 'prompt' | undefined;
  /** `plain`: schemas of tools and replies are reduced to what grammars of servers support. Default `plain`. */
  schemas?: 'plain' | 'whole' | undefined;
  /** Field in which reasoning is sent back to the model that made it; null sends none. Default: the one in which it came. */
  reasoningField?: 'reasoning' | 'reasoning_content' | null | undefined;
  /** Sends that field even if it is empty. Default false. */
  reasoningRequired?: boolean | undefined;
  /** Name of the seed; null: the server has none. Default `seed`. */
  seedField?: 'seed' | 'random_seed' | null | undefined;
}

/** Rules of vendors that apply to no other server and cannot be set by an agent. */
export interface VendorRules extends ChatQuirks {
  /** Fields for calls that the model has not signed: those of other models, of people, of an imported log. */
  unsigned?: object | undefined;
  /** The vendor's rules for tools, if they are known. */
  tools?: ToolRules | undefined;
}

/** "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level". */
const OPENAI_TOOLS: ToolRules = { shape: wholeToolSchema };

/** The vendor's rules if known. Else only what grammars know, unless the agent's own setting is `whole`. */
export function toolRules({ tools, schemas }: VendorRules): ToolRules | undefined {
  return tools ?? (schemas === 'whole' ? undefined : PLAIN_TOOLS);
}

const MOONSHOT: ChatQuirks = { reasoningField: 'reasoning_content', reasoningRequired: true };

/**
 * By host, as of November 2026. All other servers (Ollama, LM Studio, vLLM, Together, …) use the defaults. LM Studio refuses
 * `json_object`. vLLM and llama.cpp apply chat templates: Qwen's refuse a system message that is not the first, Gemma's and
 * Mistral's refuse two user messages in a row; `mergeConsecutive` helps there.
 */
export const VENDOR_QUIRKS: Readonly<Record<string, VendorRules>> = {
  // Reasoning models refuse `max_tokens`. Requests with one cache key are routed to one machine.
  'api.openai.com': {
    interleavedSystem: true,
    images: true,
    maxTokensField: 'max_completion_tokens',
    cacheKeyField: 'prompt_cache_key',
    callIds: 'forty',
    schemas: 'whole',
    tools: OPENAI_TOOLS,
  },
  // "Function call is missing a thought_signature": https://ai.google.dev/gemini-api/docs/thought-signatures
  'generativelanguage.googleapis.com': {
    tools: GEMINI_TOOLS,
    unsigned: { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } },
  },
  'openai.azure.com': { callIds: 'forty', schemas: 'whole', tools: OPENAI_TOOLS },
  // The key keeps a session with the upstream vendor whose cache is warm. Reasoning is passed on between calls.
  'openrouter.ai': { cacheKeyField: 'session_id', reasoningField: 'reasoning' },
  // Thinking is on by default, and reasoning must be sent back even if it was empty: otherwise 400 "The `reasoning_content` in
  // the thinking mode must be passed back to the API". A schema gets 400 "This response_format type is unavailable now".
  'api.deepseek.com': {
    replyFormat: 'json_object',
    reasoningField: 'reasoning_content',
    reasoningRequired: true,
    seedField: null,
  },
  // "thinking is enabled but reasoning_content is missing in assistant tool call message":
  // https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
  'api.moonshot.ai': MOONSHOT,
  'api.moonshot.cn': MOONSHOT,
  // Refuses unknown fields (422 extra_forbidden, also for stream_options: usage comes without it), ids of other lengths ("must
  // be a-z, A-Z, 0-9, with a length of 9") and "Unexpected role 'user' after role 'tool'".
  'api.mistral.ai': {
    assistantAfterTool: true,
    streamUsage: false,
    cacheKeyField: 'prompt_cache_key',
    callIds: 'nine',
    seedField: 'random_seed',
  },
  // "Streaming and tool use are not currently supported with Structured Outputs"; `max_tokens` is deprecated.
  // Reasoning is refused in messages: "property 'reasoning' is unsupported".
  'api.groq.com': {
    maxTokensField: 'max_completion_tokens',
    replyFormat: 'prompt',
    reasoningField: null,
  },
};

/** Whether this is a reasoning model of OpenAI, by its name. */
export function isReasoningModel(model: string): boolean {
  return REASONING.test(model) && !NOT_REASONING.test(model);
}
const REASONING = /^(?:ft:)?(?:o[1-9](?![a-z0-9])|gpt-(?:[5-9]|\d\d))/;
/** Models without reasoning, which refuse a request for encrypted reasoning. */
export const NOT_REASONING = /^(ft:)?(chatgpt-|gpt-[34]|gpt-5[\d.]*-chat)/;

/** Differences of a server that follow neither from its address nor from its model. */
export const QuirkSettings = z.strictObject({
  /** A known host whose rules the server follows, such as `api.mistral.ai` behind a gateway. Default: the host of `baseUrl`. */
  like: z.enum(Object.keys(VENDOR_QUIRKS)).optional(),
  /** Joins consecutive messages of one role, for chat templates that require strict alternation. Default false. */
  mergeConsecutive: z.boolean().optional(),
  /** System messages may stand between others. Default false. */
  interleavedSystem: z.boolean().optional(),
  /** Images are sent, as data URLs. Default false. */
  images: z.boolean().optional(),
  /** How the reply schema is sent: as a schema, as JSON mode with words in the prompt, or in words alone. Default `json_schema`. */
  replyFormat: z.enum(['json_schema', 'json_object', 'prompt']).optional(),
  /** `plain`: schemas of tools and replies are reduced to what grammars of servers support. Default `plain`. */
  schemas: z.enum(['plain', 'whole']).optional(),
});

/** The known quirks of the host, or of the host named by `like`, overridden by those of the definition. */
export function quirksOf(
  baseUrl: string,
  { like, ...own }: VendorRules & { like?: string | undefined } = {},
): VendorRules {
  const { hostname } = new URL(baseUrl);
  const family = FAMILIES.find(([, hosts]) => hosts.test(hostname))?.[0];
  const host = like ?? (isOpenAi(baseUrl) ? OPENAI : (family ?? hostname));
  return { ...VENDOR_QUIRKS[host], ...own, ...(own.schemas && { tools: own.tools }) };
}

/** Vendors whose resources or regions have hosts of their own. */
const FAMILIES = [
  ['openai.azure.com', /\.(?:openai|cognitiveservices|services\.ai)\.azure\.com$/],
  ['generativelanguage.googleapis.com', /^(?:[a-z0-9-]+-)?aiplatform\.googleapis\.com$/],
] as const;

const OPENAI = 'api.openai.com';

/** Whether a URL is one of OpenAI's own, in any region (`eu.api.openai.com`). */
export function isOpenAi(baseUrl: string): boolean {
  return /^(?:[a-z]{2,10}\.)?api\.openai\.com$/.test(new URL(baseUrl).hostname);
}
