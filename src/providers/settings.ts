import * as z from 'zod';
import { type AiSdkModel, isAiSdkModel, isAiSdkVendor, versionProblem } from './ai-sdk-model.ts';
import { ModelPrice } from './prices.ts';
import { ReplyLimitSettings } from './reply-limits.ts';
import { ChatQuirks } from './openai/quirks.ts';
import { SamplingFields } from './sampling.ts';
import type { CustomProvider } from './provider.ts';
import { EffortField, KeyVariable, RequestFields, requestProblems } from './request-settings.ts';
import { samplingProblems } from './sampling-problems.ts';

/**
 * One rule of a scripted model. The first rule whose `when` matches answers. `when` depends on the request alone, so
 * a retry after a crash gets the same answer.
 */
export const ScriptRule = z.strictObject({
  when: z
    .strictObject({
      agent: z.string().optional(),
      /** Substring of the last user or tool message. */
      contains: z.string().optional(),
      /** Regular expression (flags `su`) on the same text. */
      matches: z.string().optional(),
      /** Step of the turn, from 1. */
      step: z.int().positive().optional(),
      /** Number of this agent's answer in the prompt, from 1. */
      answer: z.int().positive().optional(),
      /** Number of the call within the step, from 1: lets the first try fail and the second succeed. */
      call: z.int().positive().optional(),
      /** Purpose of the request. A rule without one answers turns only. */
      purpose: z.enum(['turn', 'compaction']).optional(),
    })
    .default({}),
  /** The answer. `{{last}}` stands for the text it answers, `{{n}}` for the number of this agent's answer. */
  reply: z.string().default(''),
  calls: z.array(z.strictObject({ name: z.string(), args: z.unknown() })).default([]),
  /** Delay before the first chunk and between chunks. */
  delayMs: z.int().nonnegative().default(0),
  chunkDelayMs: z.int().nonnegative().default(0),
  /** Characters per chunk; 0 sends the reply at once. */
  chunk: z.int().nonnegative().default(0),
  /** Breaks off with this error after this many characters of the reply. */
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

const BaseUrl = z
  .url({ protocol: /^https?$/, error: 'give an address with http:// or https://' })
  .refine((url) => !/^[a-z+.-]+:\/\/[^/?#]*@/i.test(url), 'a URL is no place for a password: use apiKeyEnv');

/**
 * The model part of an agent definition. Keys stay in the environment; only the names of their variables are written.
 */
const Common = {
  /** Refused instead of ignored: an author who writes a key into a file expects it to work. */
  apiKey: z.never('keys stay out of files: name the variable that holds it with apiKeyEnv').optional(),
  model: z.string().min(1).default('default'),
  contextWindow: z.int().min(1024).optional(),
  maxOutputTokens: z.int().positive().default(4096),
  /** Price of the model, if it differs from its vendor's list. */
  price: ModelPrice.optional(),
  /** Limits of the size and duration of an answer. */
  replyLimits: ReplyLimitSettings.optional(),
  ...SamplingFields,
};
/** How hard a Claude model thinks, and what the vendor may drop from a prompt. */
export const AnthropicFields = z.strictObject({
  /** `adaptive`: newer models decide how much to think. Older models take a budget. */
  thinking: z.union([z.literal('adaptive'), z.strictObject({ budgetTokens: z.int().min(1024) })]).optional(),
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
  /**
   * Lets the vendor drop old tool results or old thinking, in addition to our own budgets. Off by default: the log
   * does not show what the vendor dropped, and the vendor's count no longer matches what was sent.
   */
  contextEditing: z
    .strictObject({
      clearToolUses: z
        .strictObject({
          /** Input tokens from which on results are dropped. */
          triggerTokens: z.int().positive(),
          /** Number of the newest results to keep. The vendor's default: 3. */
          keep: z.int().nonnegative().optional(),
          /** Drops nothing unless at least this many tokens go, because dropping invalidates the cache. */
          clearAtLeastTokens: z.int().positive().optional(),
        })
        .optional(),
      clearThinking: z.strictObject({ keepTurns: z.int().positive() }).optional(),
    })
    .optional(),
});
export type AnthropicFields = z.infer<typeof AnthropicFields>;
/** Settings of a model behind a command-line program that remembers the conversation. */
const Cli = {
  /** Working directory, created if missing. Default: an empty directory of the agent's own. */
  cwd: z.string().min(1).optional(),
  /** Environment variables that the program gets besides PATH. It gets no others. */
  env: z.array(KeyVariable).default([]),
};
/** Written as `model: bedrock('…')`; `withLanguageModel` splits that into the id and the model. */
const AiSdkFields = {
  ...Common,
  /** A model of a package of the AI SDK, such as `bedrock('…')`. */
  model: z.string() as unknown as z.ZodType<string, AiSdkModel | string>,
  /** Set by Troupe. */
  languageModel: z.custom<AiSdkModel>().optional(),
  ...RequestFields,
  ...EffortField,
};
const AnySettings = z.discriminatedUnion('provider', [
  z.object({
    provider: z.literal('scripted'),
    ...Common,
    /** Inline rules, or the path of a JSON file with them, relative to the agents file. */
    script: z.union([z.string().min(1), Script]),
  }),
  z.object({
    provider: z.literal('custom'),
    ...Common,
    /** Name of the provider in `providers` of the definition. */
    adapter: z.string().min(1),
    ...RequestFields,
    ...EffortField,
  }),
  z.object({ provider: z.literal('ai-sdk'), ...AiSdkFields }),
  z.object({
    provider: z.literal('openai-compatible'),
    ...Common,
    baseUrl: BaseUrl.default('https://api.openai.com/v1'),
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    /** Differences of the server. Overrides what is known of its host. */
    quirks: ChatQuirks.optional(),
    ...RequestFields,
    ...EffortField,
  }),
  z.object({
    provider: z.literal('anthropic'),
    ...Common,
    baseUrl: BaseUrl.optional(),
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
    ...AnthropicFields.shape,
    ...RequestFields,
  }),
  z.object({
    provider: z.literal('openai'),
    ...Common,
    baseUrl: BaseUrl.default('https://api.openai.com/v1'),
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    ...RequestFields,
    ...EffortField,
  }),
  z.object({
    provider: z.literal('claude-code'),
    ...Common,
    ...Cli,
    baseUrl: BaseUrl.optional(),
    /** If the variable is not set, the CLI's own login is used. */
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
    /** Claude Code's own tools that this agent may use, by their names there (`Read`, `Bash`). */
    builtinTools: z.array(z.string().min(1)).default([]),
  }),
  z.object({
    provider: z.literal('codex'),
    ...Common,
    ...Cli,
    baseUrl: BaseUrl.optional(),
    /** If the variable is not set, the CLI's own login is used. */
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    /** Codex's own tools that this agent may use. */
    builtinTools: z.array(z.enum(['shell'])).default([]),
    /** Access of Codex's own tools to files. */
    sandbox: z.enum(['read-only', 'workspace-write', 'danger-full-access']).default('read-only'),
  }),
]);
export const ProviderSettings = AnySettings.superRefine((settings, context) => {
  for (const { field, message } of samplingProblems(settings))
    context.addIssue({ code: 'custom', path: [field], message });
  for (const problem of requestProblems(settings)) context.addIssue({ code: 'custom', ...problem });
  if (settings.provider !== 'ai-sdk') return;
  const message = settings.languageModel ? versionProblem(settings.languageModel) : NO_MODEL;
  if (message !== null) context.addIssue({ code: 'custom', path: ['model'], message });
});
const NO_MODEL = 'is a model of a package of the AI SDK, such as bedrock("…") of @ai-sdk/amazon-bedrock';
export type ProviderSettings = z.infer<typeof AnySettings>;

/** An agent as it is written, with its model of the AI SDK as two fields: its id, as for other providers, and the model. */
export function withLanguageModel(agent: Record<string, unknown>): Record<string, unknown> {
  const { provider, model } = agent;
  if (provider !== 'ai-sdk') return agent;
  return isAiSdkModel(model)
    ? { ...agent, model: model.modelId, languageModel: model }
    : { ...agent, model: String(model) };
}

/** A model that a program brings, by its name in the definition. */
export const CustomProviderSetting = z
  .custom<CustomProvider>(
    (value) => isAiSdkModel(value) || isAiSdkVendor(value) || isProvider(value),
    'a provider is made with defineProvider, or is a model or vendor package of the AI SDK',
  )
  .superRefine((given, context) => {
    const message = isAiSdkModel(given) || isAiSdkVendor(given) ? versionProblem(given) : null;
    if (message !== null) context.addIssue({ code: 'custom', message });
  });

function isProvider(value: unknown): boolean {
  return typeof value === 'function' || (typeof value === 'object' && value !== null && 'stream' in value);
}

/** The model that turns texts into vectors. */
export const EmbedderSettings = z.strictObject({
  provider: z.literal('openai-compatible'),
  model: z.string().min(1),
  baseUrl: BaseUrl.default('https://api.openai.com/v1'),
  apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
  /** How long a turn waits for the vector of its question, in ms. */
  deadlineMs: z.int().min(1).max(60_000).default(300),
  /** The same before the first vector, in ms: the server may have to load its model first. */
  firstDeadlineMs: z.int().min(1).max(60_000).default(10_000),
});
export type EmbedderSettings = z.infer<typeof EmbedderSettings>;
