import * as z from 'zod';

/**
 * Where servers that speak chat completions differ. What is left out is what most take: one leading system message,
 * `max_tokens`, usage at the end of the stream, any call id, a plain JSON schema for the answer. The role `developer` is
 * never sent, since most servers do not know it and OpenAI takes `system` for it.
 */
export const ChatQuirks = z
  .strictObject({
    /** Joins messages of one role that follow each other, for chat templates that want strict alternation. */
    mergeConsecutive: z.boolean(),
    /** System messages may stand between others. */
    interleavedSystem: z.boolean(),
    /** The model is shown images, as data URLs. */
    images: z.boolean(),
    /** Puts a short assistant message between the result of a call and a user message. */
    assistantAfterTool: z.boolean(),
    maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']),
    /** Asks for usage at the end of the stream. */
    streamUsage: z.boolean(),
    /** The field in which requests that share a prefix are told to be kin. */
    cacheKeyField: z.enum(['prompt_cache_key', 'session_id']).nullable(),
    /** `nine`: exactly nine letters and digits. */
    callIds: z.enum(['any', 'nine']),
    /** How the schema of the answer is told: as one, as a wish for JSON beside words in the prompt, or in words alone. */
    replyFormat: z.enum(['json_schema', 'json_object', 'prompt']),
    /** `plain`: schemas of tools and answers go without what grammars of servers lack; see `plainSchema`. */
    schemas: z.enum(['plain', 'whole']),
    /** The field in which reasoning goes back to the model that it came from; null sends none. */
    reasoningField: z.enum(['reasoning', 'reasoning_content']).nullable(),
    /** Sends that field, empty, also with answers that have no reasoning. */
    reasoningRequired: z.boolean(),
  })
  .partial();
export type ChatQuirks = z.infer<typeof ChatQuirks>;

/**
 * By host, as of November 2026. Ollama, LM Studio, vLLM, Together and others that are not named take the defaults
 * (LM Studio refuses `json_object`; vLLM and llama.cpp apply chat templates, of which Qwen's refuse a system message
 * that is not the first, Gemma's and Mistral's two user messages in a row: `mergeConsecutive` helps there).
 */
export const VENDOR_QUIRKS: Readonly<Record<string, ChatQuirks>> = {
  // Models that reason refuse `max_tokens`. Requests with one cache key are routed to one machine.
  'api.openai.com': {
    interleavedSystem: true,
    images: true,
    maxTokensField: 'max_completion_tokens',
    cacheKeyField: 'prompt_cache_key',
    schemas: 'whole',
  },
  // Keeps a session on the upstream vendor whose cache is warm; hands reasoning on between calls.
  'openrouter.ai': { cacheKeyField: 'session_id', reasoningField: 'reasoning' },
  // Thinking is on by default, and then 400 "The `reasoning_content` in the thinking mode must be passed back to the
  // API", also where it was empty; 400 "This response_format type is unavailable now" for a schema.
  'api.deepseek.com': {
    replyFormat: 'json_object',
    reasoningField: 'reasoning_content',
    reasoningRequired: true,
  },
  // Refuses unknown fields (422 extra_forbidden, also for stream_options: usage comes unasked), ids of other lengths
  // ("must be a-z, A-Z, 0-9, with a length of 9") and "Unexpected role 'user' after role 'tool'".
  'api.mistral.ai': {
    assistantAfterTool: true,
    streamUsage: false,
    cacheKeyField: 'prompt_cache_key',
    callIds: 'nine',
  },
  // "Streaming and tool use are not currently supported with Structured Outputs"; `max_tokens` is deprecated.
  'api.groq.com': { maxTokensField: 'max_completion_tokens', replyFormat: 'prompt' },
};

/** What the host is known for, changed by what the definition says. */
export function quirksOf(baseUrl: string, own: ChatQuirks = {}): ChatQuirks {
  return { ...VENDOR_QUIRKS[new URL(baseUrl).hostname], ...own };
}
