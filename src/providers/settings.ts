import { createPublicKey, type JsonWebKey } from 'node:crypto';
import * as z from 'zod';
import {
  type AiSdkEmbeddingModel,
  type AiSdkModel,
  isAiSdkEmbeddingModel,
  isAiSdkModel,
  isAiSdkVendor,
  versionProblem,
} from './ai-sdk-model.ts';
import { ModelPrice } from './prices.ts';
import { AnswerTimes } from './reply-limits.ts';
import { QuirkSettings } from './quirks.ts';
import {
  type Sampling,
  SamplingFields,
  EffortField,
  KeyVariable,
  RequestFields,
  requestProblems,
  type RequestInput,
  samplingProblems,
} from './request-settings.ts';
import type { Embedder } from './embedder.ts';
import { type CustomProvider, isProvider } from './provider.ts';
import { Script, type ScriptInput } from './script.ts';

export type { ScriptInput, AiSdkModel, AnswerTimes, ModelPrice, QuirkSettings, RequestInput, Sampling };

const BaseUrl = z
  .url({ protocol: /^https?$/, error: 'give an address with http:// or https://' })
  .refine((url) => !/^[a-z+.-]+:\/\/[^/?#]*@/i.test(url), 'a URL is no place for a password: use apiKeyEnv');

/**
 * The model part of an agent definition. Keys stay in the environment; only the names of their variables are written.
 */
const Common = {
  apiKey: z.never('keys stay out of files: name the variable that holds it with apiKeyEnv').optional(),
  model: z.string().min(1).default('default'),
  contextWindow: z.int().min(1024).optional(),
  maxOutputTokens: z.int().positive().default(4096),
  price: ModelPrice.optional(),
  replyLimits: AnswerTimes.optional(),
  ...SamplingFields,
};
export const AnthropicFields = z.strictObject({
  thinking: z.union([z.literal('adaptive'), z.strictObject({ budgetTokens: z.int().min(1024) })]).optional(),
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
  contextEditing: z
    .strictObject({
      clearToolUses: z
        .strictObject({
          triggerTokens: z.int().positive(),
          keep: z.int().nonnegative().optional(),
          clearAtLeastTokens: z.int().positive().optional(),
        })
        .optional(),
      clearThinking: z.strictObject({ keepTurns: z.int().positive() }).optional(),
    })
    .optional(),
});

/** Old tool results that the vendor may drop. */
export interface ClearToolUses {
  /** Input tokens from which on results are dropped. */
  triggerTokens: number;
  /** Number of the newest results to keep. The vendor's default: 3. */
  keep?: number | undefined;
  /** Drops nothing unless at least this many tokens go, because dropping invalidates the cache. */
  clearAtLeastTokens?: number | undefined;
}

/** What Anthropic may drop from a prompt. */
export interface ContextEditing {
  /** Drops old tool results. Default: none. */
  clearToolUses?: ClearToolUses | undefined;
  /** Drops thinking but that of the newest `keepTurns` turns. Default: none. */
  clearThinking?: { keepTurns: number } | undefined;
}

/** How hard a Claude model thinks, and what the vendor may drop from a prompt. */
export interface AnthropicFields {
  /** `adaptive`: newer models decide how much to think. Older models take a budget, at least 1,024 tokens. Default: none. */
  thinking?: 'adaptive' | { budgetTokens: number } | undefined;
  /** How much effort an answer is worth. Default: the vendor's. */
  effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined;
  /**
   * Lets the vendor drop old tool results or old thinking, in addition to our own budgets. Off by default: the log
   * does not show what the vendor dropped, and the vendor's count no longer matches what was sent.
   */
  contextEditing?: ContextEditing | undefined;
}
/** A public key as a JSON Web Key. */
const CardKey = z
  .looseObject({ kty: z.enum(['EC', 'RSA', 'OKP']), kid: z.string().max(200).optional() })
  .refine((key) => !('d' in key), 'is a private key: give the public one')
  .refine(isPublicKey, 'is no public key as a JSON Web Key');

function isPublicKey(key: object): boolean {
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    return true;
  } catch {
    return false; // The shape of a key says nothing about its numbers.
  }
}

/** A server with OpenAI's API. */
const OpenAiServer = {
  /** The server. Default `https://api.openai.com/v1`. */
  baseUrl: BaseUrl.default('https://api.openai.com/v1'),
  /** Name of the variable that holds the key. Default `OPENAI_API_KEY`. */
  apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
};

/** Settings of a model behind a command-line program that remembers the conversation. */
const Cli = {
  cwd: z.string().min(1).optional(),
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
const NO_EMBEDDING_MODEL =
  'is an embedding model of a package of the AI SDK, such as bedrock.embeddingModel("…")';
const AnySettings = z.discriminatedUnion('provider', [
  z.object({
    provider: z.literal('scripted'),
    ...Common,
    script: z.union([z.string().min(1), Script]),
  }),
  z.object({
    provider: z.literal('custom'),
    ...Common,
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
    quirks: QuirkSettings.optional(),
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
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
    builtinTools: z.array(z.string().min(1)).default([]),
  }),
  z.object({
    provider: z.literal('a2a'),
    ...Common,
    url: BaseUrl,
    apiKeyEnv: KeyVariable.optional(),
    cardKeys: z.array(CardKey).min(1).max(20).optional(),
    tools: z
      .array(z.string())
      .max(0, 'a remote agent calls no tools of this company: leave tools out')
      .optional(),
  }),
  z.object({
    provider: z.literal('codex'),
    ...Common,
    ...Cli,
    baseUrl: BaseUrl.optional(),
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    builtinTools: z.array(z.enum(['shell'])).default([]),
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
    (value) =>
      isAiSdkModel(value) || isAiSdkVendor(value) || isProvider(value) || typeof value === 'function',
    'a provider is made with defineProvider, or is a model or vendor package of the AI SDK',
  )
  .superRefine((given, context) => {
    const message = isAiSdkModel(given) || isAiSdkVendor(given) ? versionProblem(given) : null;
    if (message !== null) context.addIssue({ code: 'custom', message });
  });

/** An embedding model of a server with OpenAI's API. */
const CompatibleEmbedder = z.strictObject({
  /** Who runs the model. */
  provider: z.literal('openai-compatible'),
  /** The server's name of the model. */
  model: z.string().min(1),
  ...OpenAiServer,
});

const AiSdkEmbedder = z.strictObject({
  /** Who runs the model. */
  provider: z.literal('ai-sdk'),
  /** The model, such as `bedrock.embeddingModel('…')`. */
  model: z
    .custom<AiSdkEmbeddingModel>(isAiSdkEmbeddingModel, NO_EMBEDDING_MODEL)
    .superRefine((model, context) => {
      const message = isAiSdkEmbeddingModel(model) ? versionProblem(model) : null;
      if (message !== null) context.addIssue({ code: 'custom', message });
    }),
});

const CustomEmbedder = z.strictObject({
  /** Who runs the model. */
  provider: z.literal('custom'),
  /** Made with `defineEmbedder`. */
  embedder: z.custom<Embedder>(isEmbedder, 'an embedder is made with defineEmbedder'),
});
export const EmbedderSettings = z.discriminatedUnion(
  'provider',
  [CompatibleEmbedder, AiSdkEmbedder, CustomEmbedder],
  'is one of openai-compatible, ai-sdk, custom',
);
export type EmbedderSettings = z.infer<typeof EmbedderSettings>;

function isEmbedder(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'embed' in value && typeof value.embed === 'function';
}
