import * as z from 'zod';
import { TroupeError } from '../base/errors.ts';
import type { InputOf } from '../base/input-of.ts';
import { NOT_REASONING, isReasoningModel, quirksOf } from './quirks.ts';
import { createRedact, credentialOf } from './redact.ts';

const hideKeys = createRedact([]);
/** Name of the variable that holds a key. A value that is itself a key is refused, and not repeated in the error. */
export const KeyVariable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'this is the name of an environment variable, never the key itself')
  .refine((name) => hideKeys(name) === name, 'this is a key: write the name of the variable that holds it');

const HeaderName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, 'this is no name of a header');
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const HeaderValue = z
  .string()
  .max(8_192)
  .regex(HEADER_VALUE, 'a header is one line of Latin letters, digits and signs')
  .refine(
    (value) => hideKeys(value) === value,
    'this is a key: name the variable that holds it in headersEnv',
  );

const Effort = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);
/** How much a model reasons. */
export type Effort = z.infer<typeof Effort>;
export const EffortField = {
  /** How much the model reasons, if it can. Default: the vendor's. */
  effort: Effort.optional(),
};

/** What a request contains beside what Troupe puts there. */
export const RequestFields = {
  /** Headers of every request. Secrets go into `headersEnv`. Default: none. */
  headers: z.record(HeaderName, HeaderValue).optional(),
  /** Headers with a secret value: each maps to the name of the variable that holds it. Default: none. */
  headersEnv: z.record(HeaderName, KeyVariable).optional(),
  /** Further fields of the body of every request, under the vendor's names; for packages of the AI SDK by vendor. Default: none. */
  providerOptions: z.record(z.string().min(1), z.json()).optional(),
};

const RequestSettings = z.object({ ...RequestFields, ...EffortField });
export type RequestSettings = z.infer<typeof RequestSettings>;

/** The settings with the values of their variables. */
export interface RequestExtras {
  headers: Record<string, string>;
  body: Record<string, unknown>;
  effort?: Effort | undefined;
  /** Values that no message may repeat. */
  secrets: readonly string[];
}

export const NO_EXTRAS: RequestExtras = { headers: {}, body: {}, secrets: [] };

export function requestExtras(
  { headers = {}, headersEnv = {}, providerOptions = {}, effort }: RequestSettings,
  env: Readonly<Record<string, string | undefined>>,
): RequestExtras {
  const kept = Object.entries(headersEnv).map(([name, variable]) => {
    const value = env[variable]?.trim() ?? '';
    if (value !== '' && HEADER_VALUE.test(value)) return [name, value] as const;
    const what = value === '' ? 'is not set' : 'holds no value for a header';
    const message = `the environment variable ${variable} ${what}: headersEnv takes the header "${name}" from it`;
    throw new TroupeError('config_invalid', message, { variable });
  });
  return {
    headers: { ...headers, ...Object.fromEntries(kept) },
    body: providerOptions,
    effort,
    secrets: kept.flatMap(([, value]) => [value, credentialOf(value) ?? value]),
  };
}

interface Problem {
  path: string[];
  message: string;
}

/** Headers of the connection. Requests set them themselves. */
const CONNECTION = [
  'host',
  'content-length',
  'content-type',
  'connection',
  'transfer-encoding',
  'accept-encoding',
];
/** Headers whose value is a credential, whatever it looks like. */
const SECRET_HEADERS = /^(?:(?:proxy-)?authorization|cookie|(?:x-)?api-key|x-goog-api-key)$/i;
/** Fields of the body that Troupe sets itself. */
const OWN_FIELDS =
  /^(?:model|messages|input|instructions|system|tools|stream|stream_options|n|max_(?:completion_|output_)?tokens|response_format|text|output_config|store|previous_response_id|conversation)$/;
/** Such fields of one vendor only; other vendors use these names for options. */
const VENDOR_FIELDS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['thinking', 'context_management'],
  openai: ['include'],
};

type Written = { provider: string; model?: string } & { [K in keyof RequestSettings]?: unknown };

/** Yields a problem for each setting that would break a request. */
export function* requestProblems(settings: Written): Generator<Problem> {
  const { provider, model = '', effort, headers, headersEnv, providerOptions } = settings;
  for (const [field, names] of Object.entries({ headers, headersEnv })) {
    for (const name of Object.keys(names ?? {})) {
      const message = headerProblem(name, field === 'headers');
      if (message !== null) yield { path: [field, name], message };
    }
  }
  for (const [name, value] of Object.entries(providerOptions ?? {})) {
    const message = optionProblem(provider, name, value);
    if (message !== null) yield { path: ['providerOptions', name], message };
  }
  if (provider.startsWith('openai') && effort !== undefined && NOT_REASONING.test(model))
    yield { path: ['effort'], message: `${model} does not reason: leave effort out` };
}

function headerProblem(name: string, isPlain: boolean): string | null {
  if (CONNECTION.includes(name.toLowerCase())) return 'every request sets it: leave it out';
  if (!isPlain || !SECRET_HEADERS.test(name)) return null;
  return 'holds a secret: name the variable that holds it in headersEnv';
}

function optionProblem(provider: string, name: string, value: unknown): string | null {
  if (provider === 'custom') return null;
  if (provider !== 'ai-sdk') {
    const isOwn = OWN_FIELDS.test(name) || VENDOR_FIELDS[provider]?.includes(name);
    return isOwn ? 'Troupe sets it itself: leave it out' : null;
  }
  const isOptions = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isOptions ? null : 'are the options of one vendor: { anthropic: { … } }';
}

export const SamplingFields = {
  /** 0: always the likeliest token; higher values, up to 2, vary more. */
  temperature: z.number().min(0).max(2).optional(),
  /** Only the likeliest tokens that together have this probability are considered, above 0 to 1. */
  topP: z.number().gt(0).max(1).optional(),
  /** Equal requests with one seed get similar answers, as far as the server supports it. */
  seed: z.int().nonnegative().optional(),
  /** The answer ends before the first of these texts, 1 to 4. Summaries ignore this. */
  stop: z.array(z.string().min(1).max(200)).min(1).max(4).optional(),
};
const SamplingSettings = z.object(SamplingFields);

/** How a model chooses its tokens. A field that is left out is not sent: the vendor's default applies. */
export interface Sampling extends InputOf<typeof SamplingSettings> {}
type SamplingField = keyof Sampling;
const SAMPLING_FIELDS = Object.keys(SamplingFields) as SamplingField[];

/** The sampling settings among an agent's settings. */
export function samplingOf(settings: Sampling): Sampling {
  const given = SAMPLING_FIELDS.filter((field) => settings[field] !== undefined);
  return Object.fromEntries(given.map((field) => [field, settings[field]]));
}

/** The object without its undefined fields, for the body of a request. */
export function givenOf<T extends object>(body: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as never;
}

interface SamplingProblem {
  field: SamplingField;
  message: string;
}

/** The settings of an agent that decide which sampling settings are allowed. */
interface SampledSettings extends Sampling {
  provider:
    | 'scripted'
    | 'custom'
    | 'ai-sdk'
    | 'claude-code'
    | 'codex'
    | 'a2a'
    | 'anthropic'
    | 'openai'
    | 'openai-compatible';
  model: string;
  baseUrl?: string | undefined;
  quirks?: Parameters<typeof quirksOf>[1];
  thinking?: unknown;
}

/** The sampling settings that the provider or its model would refuse, each with the reason. */
export function samplingProblems(settings: SampledSettings): SamplingProblem[] {
  // An invalid URL is reported elsewhere.
  if (settings.baseUrl !== undefined && !URL.canParse(settings.baseUrl)) return [];
  switch (settings.provider) {
    case 'scripted':
    case 'custom':
    case 'ai-sdk':
      return [];
    case 'claude-code':
    case 'codex':
    case 'a2a':
      return refuse(settings, SAMPLING_FIELDS, () => `${settings.provider} has no such setting`);
    case 'anthropic':
      return anthropicProblems(settings);
    case 'openai':
      return [
        ...refuse(
          settings,
          ['seed', 'stop'],
          () => "OpenAI's Responses API has no such setting; openai-compatible has more",
        ),
        ...reasoningProblems(settings, ['temperature', 'topP']),
      ];
    case 'openai-compatible':
      return chatProblems(settings);
  }
}

/** Yields a problem for each field that is set and has a reason against it. */
function refuse(
  settings: Sampling,
  fields: readonly SamplingField[],
  reason: (field: SamplingField) => string | null,
): SamplingProblem[] {
  return fields.flatMap((field) => {
    const why = settings[field] === undefined ? null : reason(field);
    return why === null ? [] : [{ field, message: `${why}: leave ${field} out` }];
  });
}

function chatProblems(settings: SampledSettings): SamplingProblem[] {
  const { baseUrl = 'https://api.openai.com/v1' } = settings;
  const { seedField } = quirksOf(baseUrl, settings.quirks);
  const { hostname } = new URL(baseUrl);
  return [
    ...refuse(settings, ['seed'], () => (seedField === null ? `${hostname} has no such setting` : null)),
    ...reasoningProblems(settings, ['temperature', 'topP', 'stop']),
  ];
}

function reasoningProblems(settings: SampledSettings, fields: readonly SamplingField[]): SamplingProblem[] {
  const { model } = settings;
  if (!isReasoningModel(model)) return [];
  return refuse(settings, fields, () => `${model} reasons, and OpenAI's reasoning models do not take it`);
}

/** Claude models that refuse every sampling setting, whatever server they run on. */
const UNSAMPLED =
  /claude-(?:opus-4[-.][7-9]|(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|\d\d)(?!\d)|mythos-preview)/;

function anthropicProblems(settings: SampledSettings): SamplingProblem[] {
  const {
    model,
    thinking,
    baseUrl = 'https://api.anthropic.com',
    temperature = 1,
    topP = 1,
    stop,
  } = settings;
  const isVendor = new URL(baseUrl).hostname === 'api.anthropic.com';
  const sampled = ['temperature', 'topP'] as const;
  const whySampled = (field: SamplingField) => {
    if (isVendor) return "Anthropic's API has had no such setting since version 2026-10-21";
    if (UNSAMPLED.test(model)) return `${model} does not take it`;
    if (!thinking) return null;
    // These are the values that a thinking model uses anyway.
    if (field === 'temperature')
      return temperature === 1 ? null : 'a model that thinks has the temperature 1';
    return topP >= 0.95 ? null : 'a model that thinks takes values from 0.95 on';
  };
  const isRange = temperature > 1 && !isVendor;
  const range = { field: 'temperature' as const, message: 'is at most 1 for Claude' };
  const blank = { field: 'stop' as const, message: 'Anthropic refuses a text of white space only' };
  return [
    ...refuse(settings, ['seed'], () => "Anthropic's API has no such setting"),
    ...refuse(settings, sampled, whySampled),
    ...(isRange ? [range] : []),
    ...(stop?.some((text) => text.trim() === '') ? [blank] : []),
  ];
}
