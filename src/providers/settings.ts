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
import { type ModelPrice, PriceSetting } from './prices.ts';
import { MAX_SILENCE_MS } from './reply-limits.ts';
import { QuirkSettings } from './quirks.ts';
import {
  type Sampling,
  SamplingFields,
  EffortField,
  givenOf,
  KeyVariable,
  RequestFields,
  requestProblems,
  samplingOf,
  samplingProblems,
} from './request-settings.ts';
import type { InputOf } from '../base/input-of.ts';
import type { Embedder } from './embedder.ts';
import { type CustomProvider, isProvider } from './provider.ts';
import { Script, type ScriptInput } from './script.ts';

export type { ScriptInput, AiSdkModel, ModelPrice, QuirkSettings, Sampling };

const BaseUrl = z
  .url({ protocol: /^https?$/, error: 'give an address with http:// or https://' })
  .refine((url) => !/^[a-z+.-]+:\/\/[^/?#]*@/i.test(url), 'a URL is no place for a password: use apiKeyEnv');

/** Fields of every model. Keys stay in the environment; only the names of their variables are written. */
const Model = {
  /** Refused: keys stay out of files. Name the variable that holds the key with `apiKeyEnv`. */
  apiKey: z.never('keys stay out of files: name the variable that holds it with apiKeyEnv').optional(),
  /** The vendor's name of the model. Default `default`. */
  model: z.string().min(1).default('default'),
  /** Most tokens of prompt and answer together, at least 1,024. Default: the known model's, else 128,000. */
  contextWindow: z.int().min(1024).optional(),
  /** Most tokens of an answer. Default 4,096. */
  maxOutputTokens: z.int().positive().default(4096),
  /** Price of the model in US dollars per million tokens, if it differs from its vendor's list. */
  price: PriceSetting.optional(),
  /** Longest silence before and within an answer, ms. A longer one may be a lost connection, so the call is retried. Default 300,000. */
  silenceMs: z.int().min(1).max(MAX_SILENCE_MS).optional(),
  ...SamplingFields,
};
export const ModelSettings = z.object(Model);

export const AnthropicFields = z.strictObject({
  /** `adaptive`: newer models decide how much to think. Older models take a number of tokens, at least 1,024. Default: none. */
  thinking: z.union([z.literal('adaptive'), z.int().min(1024)]).optional(),
  /** How much effort an answer is worth. Default: the vendor's. */
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
});
/** How hard a Claude model thinks. */
export interface AnthropicFields extends InputOf<typeof AnthropicFields> {}

/** A public key as a JSON Web Key. */
const CardKey = z
  .record(z.string(), z.unknown())
  .refine((key) => !('d' in key), 'is a private key: give the public one')
  .refine(isPublicKey, 'is no public key as a JSON Web Key');

function isPublicKey(key: object): boolean {
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    return true;
  } catch {
    return false; // The key has the right shape, but its numbers are invalid.
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
const Program = {
  ...Model,
  /** Working directory, created if missing. Default: an empty directory of the agent's own. */
  cwd: z.string().min(1).optional(),
  /** Names of environment variables that the program gets besides PATH. Default: none. */
  env: z.array(KeyVariable).default([]),
  /** The model server, if it is not the vendor's. */
  baseUrl: BaseUrl.optional(),
};

/** Fields of a model that is reached over HTTP or brought by the program. */
export const ReachedModel = { ...Model, ...RequestFields, ...EffortField };

const NO_EMBEDDING_MODEL =
  'is an embedding model of a package of the AI SDK, such as bedrock.embeddingModel("…")';
/** The fields of an agent that depend on its provider, by the name of the provider. */
export const PROVIDER_SETTINGS = {
  scripted: z.object({
    /** Who runs the model. */
    provider: z.literal('scripted'),
    ...Model,
    /** Inline rules, or the path of a JSON file with them, relative to the agents file. */
    script: z.union([z.string().min(1), Script]),
  }),
  custom: z.object({
    /** Who runs the model. */
    provider: z.literal('custom'),
    ...ReachedModel,
    /** Name of the provider in `providers` of the definition. */
    adapter: z.string().min(1),
  }),
  'ai-sdk': z.object({
    /** Who runs the model. */
    provider: z.literal('ai-sdk'),
    ...ReachedModel,
    /** The model, such as `bedrock('…')`. In a parsed definition this is its id, and `languageModel` is the model. */
    model: z.string() as unknown as z.ZodType<string, AiSdkModel | string>,
    /** Set by Troupe. */
    languageModel: z.custom<AiSdkModel>().optional(),
  }),
  'openai-compatible': z.object({
    /** Who runs the model. */
    provider: z.literal('openai-compatible'),
    ...ReachedModel,
    ...OpenAiServer,
    /** Differences of the server. Overrides what is known of its host. */
    quirks: QuirkSettings.optional(),
  }),
  anthropic: z.object({
    /** Who runs the model. */
    provider: z.literal('anthropic'),
    ...Model,
    ...AnthropicFields.shape,
    ...RequestFields,
    /** The server, if it is not the vendor's. */
    baseUrl: BaseUrl.optional(),
    /** Name of the variable that holds the key. Default `ANTHROPIC_API_KEY`. */
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
  }),
  openai: z.object({
    /** Who runs the model. */
    provider: z.literal('openai'),
    ...ReachedModel,
    ...OpenAiServer,
  }),
  'claude-code': z.object({
    /** Who runs the model. */
    provider: z.literal('claude-code'),
    ...Program,
    /** Name of the variable that holds the key. If it is not set, the program's own login is used. Default `ANTHROPIC_API_KEY`. */
    apiKeyEnv: KeyVariable.default('ANTHROPIC_API_KEY'),
    /** Claude Code's own tools that this agent may use, by their names there (`Read`, `Bash`). Default: none. */
    builtinTools: z.array(z.string().min(1)).default([]),
  }),
  a2a: z.object({
    /** Who runs the model. */
    provider: z.literal('a2a'),
    ...Model,
    /** URL of its agent card, or of the server that has the card at `/.well-known/agent-card.json`. */
    url: BaseUrl,
    /** Name of the variable that holds the bearer token. Default: none is sent. */
    apiKeyEnv: KeyVariable.optional(),
    /** Public keys, as JSON Web Keys. The agent card must be signed with one of them. Default: no signature is needed. */
    cardKeys: z.array(CardKey).min(1).max(20).optional(),
    /** Always empty: a remote agent calls no tools of this company. */
    tools: z
      .array(z.string())
      .max(0, 'a remote agent calls no tools of this company: leave tools out')
      .optional(),
  }),
  codex: z.object({
    /** Who runs the model. */
    provider: z.literal('codex'),
    ...Program,
    /** Name of the variable that holds the key. If it is not set, the program's own login is used. Default `OPENAI_API_KEY`. */
    apiKeyEnv: KeyVariable.default('OPENAI_API_KEY'),
    /** Codex's own tools that this agent may use. Default: none. */
    builtinTools: z.array(z.enum(['shell'])).default([]),
    /** Access of Codex's own tools to files. Default `read-only`. */
    sandbox: z.enum(['read-only', 'workspace-write', 'danger-full-access']).default('read-only'),
  }),
};
const P = PROVIDER_SETTINGS;
const AnySettings = z.discriminatedUnion('provider', [
  P.scripted,
  P.custom,
  P['ai-sdk'],
  P['openai-compatible'],
  P.anthropic,
  P.openai,
  P['claude-code'],
  P.a2a,
  P.codex,
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

/** The agent as it is written, with its model of the AI SDK split into two fields: the id, as for other providers, and the model. */
export function withLanguageModel(agent: Record<string, unknown>): Record<string, unknown> {
  const { provider, model } = agent;
  if (provider !== 'ai-sdk') return agent;
  return isAiSdkModel(model)
    ? { ...agent, model: model.modelId, languageModel: model }
    : { ...agent, model: String(model) };
}

/** A model that the program brings, by its name in the definition. */
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

interface Reasoning {
  thinking?: 'adaptive' | number | undefined;
  effort?: string | undefined;
}

/** The settings that decide how an agent's model answers, as far as they are given. */
export function answerSettingsOf(settings: ProviderSettings): Sampling & Reasoning {
  const given = settings as Sampling & Reasoning;
  return { ...samplingOf(given), ...givenOf({ thinking: given.thinking, effort: given.effort }) };
}
