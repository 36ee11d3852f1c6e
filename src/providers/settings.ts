import * as z from 'zod';
import { ModelPrice } from './prices.ts';
import { createRedact } from './redact.ts';
import { ReplyLimitSettings } from './reply-limits.ts';
import { ChatQuirks } from './openai/quirks.ts';

/**
 * One step of a scripted model. The first rule whose `when` matches answers; `when` looks only at the request, so a
 * retry after a crash is answered alike.
 */
export const ScriptRule = z.strictObject({
  when: z
    .strictObject({
      agent: z.string().optional(),
      /** Text of the last user or tool message contains this. */
      contains: z.string().optional(),
      /** Regular expression (flags `su`) on the same text. */
      matches: z.string().optional(),
      /** Step of the turn, from 1. */
      step: z.int().positive().optional(),
      /** Which of this agent's answers it is in the prompt, from 1. */
      answer: z.int().positive().optional(),
      /** Number of the call within the step, from 1: lets the first try fail and the second succeed. */
      call: z.int().positive().optional(),
      /** What is asked for: a rule that does not say so answers turns only. */
      purpose: z.enum(['turn', 'compaction']).optional(),
    })
    .default({}),
  /** The answer; `{{last}}` is the text it answers, `{{n}}` the number of this agent's answer. */
  reply: z.string().default(''),
  calls: z.array(z.strictObject({ name: z.string(), args: z.unknown() })).default([]),
  /** Before the first chunk, and between chunks. */
  delayMs: z.int().nonnegative().default(0),
  chunkDelayMs: z.int().nonnegative().default(0),
  /** Characters per chunk; 0 sends the reply at once. */
  chunk: z.int().nonnegative().default(0),
  /** Breaks after this many characters of the reply, with this error. */
  fail: z
    .strictObject({
      after: z.int().nonnegative().default(0),
      code: z.string(),
      message: z.string().default('scripted failure'),
    })
    .optional(),
});
export type ScriptRule = z.infer<typeof ScriptRule>;
export const Script = z.strictObject({ rules: z.array(ScriptRule).min(1) });
export type Script = z.infer<typeof Script>;

/** The name of a variable that holds a key. What is itself a key is refused, and not repeated. */
const KeyVariable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'this is the name of an environment variable, never the key itself')
  .refine((name) => hideKeys(name) === name, 'this is a key: write the name of the variable that holds it');
const hideKeys = createRedact([]);
const BaseUrl = z
  .url()
  .refine((url) => !/^[a-z+.-]+:\/\/[^/?#]*@/i.test(url), 'a URL is no place for a password: use apiKeyEnv');

/** What an agent definition says about its model. Keys stay in the environment; only their names are written. */
const Common = {
  /** Refused, and not only ignored: who writes a key into a file believes that it works. */
  apiKey: z.never('keys stay out of files: name the variable that holds it with apiKeyEnv').optional(),
  model: z.string().min(1).default('default'),
  contextWindow: z.int().min(1024).optional(),
  maxOutputTokens: z.int().positive().default(4096),
  /** What the model costs here, where that is not what its vendor's list says. */
  price: ModelPrice.optional(),
  /** How much is taken of one answer, and for how long. */
  replyLimits: ReplyLimitSettings.optional(),
};
/** How hard a Claude model thinks, and what the vendor may take out of a prompt. */
export const AnthropicFields = z.strictObject({
  /** Newer models decide by themselves how much to think (`adaptive`); older ones are given a budget. */
  thinking: z.union([z.literal('adaptive'), z.strictObject({ budgetTokens: z.int().min(1024) })]).optional(),
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
  /**
   * Lets the vendor leave out old results of calls, or old thinking, beyond what our own budgets do. Off by default:
   * the log does not know what the model was spared, and what the vendor counts is no longer what was sent.
   */
  contextEditing: z
    .strictObject({
      clearToolUses: z
        .strictObject({
          /** From so many tokens of input on. */
          triggerTokens: z.int().positive(),
          /** How many of the newest stay. The vendor's default: 3. */
          keep: z.int().nonnegative().optional(),
          /** Only if at least so many tokens go, as it breaks the cache. */
          clearAtLeastTokens: z.int().positive().optional(),
        })
        .optional(),
      clearThinking: z.strictObject({ keepTurns: z.int().positive() }).optional(),
    })
    .optional(),
});
export type AnthropicFields = z.infer<typeof AnthropicFields>;
/** Of an agent whose model is reached through a command-line program that remembers the conversation. */
const Cli = {
  /** Where it works; made if missing. Default: an empty directory of the agent's own. */
  cwd: z.string().min(1).optional(),
  /** Names of environment variables that it is given beside PATH; it gets no others. */
  env: z.array(KeyVariable).default([]),
};
export const ProviderSettings = z.discriminatedUnion('provider', [
  z.object({
    provider: z.literal('scripted'),
    ...Common,
    /** Rules inline, or the path of a JSON file with them, relative to the agents file. */
    script: z.union([z.string().min(1), Script]),
  }),
  z.object({
    provider: z.literal('openai-compatible'),
    ...Common,
    baseUrl: BaseUrl.default('https://api.openai.com/v1'),
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    /** Where the server differs from others; comes before what is known of its host. */
    quirks: ChatQuirks.optional(),
  }),
  z.object({
    provider: z.literal('anthropic'),
    ...Common,
    baseUrl: BaseUrl.optional(),
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
    ...AnthropicFields.shape,
  }),
  z.object({
    provider: z.literal('openai'),
    ...Common,
    baseUrl: BaseUrl.default('https://api.openai.com/v1'),
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
  }),
  z.object({
    provider: z.literal('claude-code'),
    ...Common,
    ...Cli,
    baseUrl: BaseUrl.optional(),
    /** Without a value in the environment the CLI's own login is used. */
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
    /** Claude Code's own tools that this agent may use, by their names there (`Read`, `Bash`). */
    builtinTools: z.array(z.string().min(1)).default([]),
  }),
  z.object({
    provider: z.literal('codex'),
    ...Common,
    ...Cli,
    baseUrl: BaseUrl.optional(),
    /** Without a value in the environment the CLI's own login is used. */
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    /** Codex' own tools that this agent may use. */
    builtinTools: z.array(z.enum(['shell'])).default([]),
    /** What its own tools may touch. */
    sandbox: z.enum(['read-only', 'workspace-write', 'danger-full-access']).default('read-only'),
  }),
]);
export type ProviderSettings = z.infer<typeof ProviderSettings>;

/** What turns texts into vectors. */
export const EmbedderSettings = z.strictObject({
  provider: z.literal('openai-compatible'),
  model: z.string().min(1),
  baseUrl: BaseUrl.default('https://api.openai.com/v1'),
  apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
  /** How long a turn waits for the vector of its question, ms. */
  deadlineMs: z.int().min(1).max(60_000).default(300),
  /** The same until the server has given one: it may have to load its model for it. */
  firstDeadlineMs: z.int().min(1).max(60_000).default(10_000),
});
export type EmbedderSettings = z.infer<typeof EmbedderSettings>;
