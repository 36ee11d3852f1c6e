import * as z from 'zod';
import { TroupeError } from '../base/errors.ts';
import { NOT_REASONING } from './openai/quirks.ts';
import { createRedact, credentialOf } from './redact.ts';

const hideKeys = createRedact([]);
/** Name of the variable that holds a key. A value that looks like a key itself is refused, and not repeated. */
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

/** How much a model reasons. */
const Effort = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);
export type Effort = z.infer<typeof Effort>;
export const EffortField = { effort: Effort.optional() };

/** What a request holds beside what Troupe puts there. */
export const RequestFields = {
  /** Headers of every request. Secrets go into `headersEnv`. */
  headers: z.record(HeaderName, HeaderValue).optional(),
  /** Headers with a secret value: each maps to the name of the variable that holds it. */
  headersEnv: z.record(HeaderName, KeyVariable).optional(),
  /** Further fields of the body of every request, as the vendor names them; for packages of the AI SDK by vendor. */
  providerOptions: z.record(z.string().min(1), z.json()).optional(),
};
/** What a request holds beside what Troupe puts there. Written out for its texts; a test holds it equal to the fields. */
export interface RequestInput {
  /** Headers of every request. Secrets go into `headersEnv`. Default: none. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Headers with a secret value: each maps to the name of the variable that holds it. Default: none. */
  headersEnv?: Readonly<Record<string, string>> | undefined;
  /**
   * Further fields of the body of every request, as the vendor names them; for packages of the AI SDK by vendor. Default:
   * none.
   */
  providerOptions?: Readonly<Record<string, z.core.util.JSONType>> | undefined;
}

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

/** Headers of the connection, which requests set themselves. */
const CONNECTION = [
  'host',
  'content-length',
  'content-type',
  'connection',
  'transfer-encoding',
  'accept-encoding',
];
/** Headers that hold a credential whatever they look like. */
const SECRET_HEADERS = /^(?:(?:proxy-)?authorization|cookie|(?:x-)?api-key|x-goog-api-key)$/i;
/** Fields of a body that the conversation decides. */
const OWN_FIELDS =
  /^(?:model|messages|input|instructions|system|tools|stream|stream_options|n|max_(?:completion_|output_)?tokens|response_format|text|output_config|store|previous_response_id|conversation)$/;
/** The same of one vendor only; others have options of these names. */
const VENDOR_FIELDS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['thinking', 'context_management'],
  openai: ['include'],
};

type Written = { provider: string; model?: string } & { [K in keyof RequestSettings]?: unknown };

/** Settings that would break a request. */
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
