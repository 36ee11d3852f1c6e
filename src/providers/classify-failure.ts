import type { ModelFailure } from './provider.ts';
import { createRedact } from './redact.ts';
import { policyOf } from '../base/errors.ts';

/** A failed call as its vendor or SDK described it, without any vendor's types. */
export interface VendorError extends DelaySource {
  /** HTTP status of the response. */
  status?: number;
  /** The vendor's error codes and types, in lower case. */
  words: readonly string[];
  /** No response arrived from the vendor: the connection was refused, reset, cut or timed out. */
  connection: boolean;
  /** A connection failure that may pass: no server listens, or it hung up. A wrong host name or certificate does not pass. */
  away?: boolean;
}

const MESSAGE_LIMIT = 2000;
const OVERFLOW_WORDS = ['context_length_exceeded', 'request_too_large', 'string_above_max_length'];
const OVERFLOW =
  /prompt is too long|exceeds? (the )?(model'?s )?(maximum |available )?context|maximum context length|exceed context limit|context (length|window|size).{0,40}(exceed|too)|input is too long|input token count .{0,40}exceeds|too many (input )?tokens/i;
const QUOTA_WORDS = [
  'insufficient_quota',
  'billing_error',
  'billing_hard_limit_reached',
  'usage_not_included',
];
const MODEL_WORDS = ['model_not_found', 'invalid_model', 'model_not_available'];
/** OpenRouter, DeepSeek and Mistral answer 400 to an unknown model, without a code for it. */
const NO_SUCH_MODEL =
  /is not a valid model|model not exist|^(\d{3} )?invalid model\b|model .{0,100}does not exist|model identifier is invalid/i;
const REFUSED_WORDS = [
  'content_filter',
  'content_policy_violation',
  'responsibleaipolicyviolation',
  'invalid_prompt',
  'bio_policy',
  'cyber_policy',
  'misalignment_policy_violation',
];
/** Those in capitals are Google's: https://cloud.google.com/apis/design/errors. */
const BUSY_WORDS = ['overloaded_error', 'overloaded', 'server_is_overloaded', 'slow_down', 'unavailable'];
const RATE_WORDS = ['rate_limit_error', 'rate_limit_exceeded', 'rate_limited', 'resource_exhausted'];
const AUTH_WORDS = [
  'invalid_api_key',
  'api_key_invalid',
  'authentication_error',
  'permission_error',
  'unauthenticated',
  'permission_denied',
];

/** Decides the code, and so what the engine does (see errors.ts). The first rule that matches wins, so specific rules come first. */
function codeOf(error: VendorError, opened: boolean): ModelFailure['code'] {
  if (error.connection) return opened ? 'provider_truncated' : 'provider_unreachable';
  return RULES.find(([, holds]) => holds(error))?.[0] ?? 'provider_failed';
}

const RULES: readonly (readonly [code: ModelFailure['code'], holds: (error: VendorError) => boolean])[] = [
  ['context_overflow', isOverflow],
  [
    'provider_quota',
    (error) =>
      says(error, QUOTA_WORDS) || error.status === 402 || /credit balance is too low/i.test(error.message),
  ],
  // Before the rule for 403: a project without access to a model gets 403 with this code.
  ['provider_model_unknown', (error) => says(error, MODEL_WORDS) || isModelRefused(error)],
  ['provider_auth', (error) => hasStatus(error, 401, 403) || says(error, AUTH_WORDS)],
  [
    'provider_refused',
    (error) => says(error, REFUSED_WORDS) || /content filtering policy/i.test(error.message),
  ],
  ['provider_rate_limited', (error) => error.status === 429 || says(error, RATE_WORDS)],
  ['provider_overloaded', (error) => hasStatus(error, 503, 529) || says(error, BUSY_WORDS)],
  ['provider_failed', (error) => hasStatus(error, 408, 409, 425)],
  [
    'provider_invalid_request',
    ({ status = 0, words }) => (status >= 400 && status < 500) || words.includes('invalid_request_error'),
  ],
];

function says({ words }: VendorError, any: readonly string[]): boolean {
  return words.some((word) => any.includes(word));
}

function hasStatus({ status }: VendorError, ...any: readonly number[]): boolean {
  return status !== undefined && any.includes(status);
}

function isOverflow(error: VendorError): boolean {
  const { status, message } = error;
  if (says(error, OVERFLOW_WORDS) || status === 413) return true;
  return status !== 429 && (status ?? 400) < 500 && OVERFLOW.test(message);
}

function isModelRefused(error: VendorError): boolean {
  if (isNotFound(error)) return /model/i.test(error.message);
  return (error.status === 400 || error.status === 422) && NO_SUCH_MODEL.test(error.message);
}

function isNotFound(error: VendorError): boolean {
  return error.status === 404 || error.words.includes('not_found_error');
}

/** A server that runs but is overloaded. */
const BUSY = /overload|capacity|busy|too many|pending requests/i;

/** Whether a proxy's server is down or a server is still loading its model: worth waiting minutes for. */
function isAway({ status, words, message, away }: VendorError, opened: boolean): boolean {
  if (opened) return false;
  if (away || status === 502) return true;
  return status === 503 && !BUSY.test(message) && !words.some((word) => BUSY_WORDS.includes(word));
}

interface ClassifyOptions {
  /** The answer had begun, so a lost connection counts as a truncation. */
  opened: boolean;
  /** Now, in milliseconds since the epoch, for dates in `retry-after`. */
  now: number;
  /** Texts that must not reach the log: some servers repeat the key that they refused. */
  secrets?: readonly string[];
}

/** The failure of a call. Its code decides what the engine does. */
export function classifyFailure(
  error: VendorError,
  { opened, now, secrets = [] }: ClassifyOptions,
): ModelFailure {
  const code = codeOf(error, opened);
  let message = shownMessage(error.message, secrets);
  if (error.status !== undefined && !message.startsWith(String(error.status)))
    message = `${error.status} ${message}`;
  if (code === 'provider_invalid_request' && isNotFound(error)) message += ' (is the base URL right?)';
  const retryAfterMs = policyOf(code) === 'retry' ? retryDelayOf(error, now) : undefined;
  return {
    code,
    message,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(isAway(error, opened) && { isAway: true }),
  };
}

/** A message that may be shown to people: of bounded length, and without keys, which some servers repeat. */
export function shownMessage(message: string, secrets: readonly string[]): string {
  // Cut after redaction, because half a key would not be recognised.
  return createRedact(secrets)(message).slice(0, MESSAGE_LIMIT).toWellFormed();
}

const NETWORK_CODE =
  /^(E[A-Z]{3,}|UND_ERR_\w+|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/;

/** No server listens, the server hung up, or this machine is offline. */
const AWAY_CODES = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** Reads an SDK's error by its shape, so that adapters do not need the error classes of their SDKs. */
export function vendorErrorOf(thrown: unknown): VendorError {
  const error = recordOf(thrown);
  const records = recordsIn(error['error']);
  const words = [error, ...records].flatMap(wordsOf);
  const status = typeof error['status'] === 'number' ? error['status'] : statusIn(words);
  const causes = causesOf(thrown);
  const connection = status === undefined && causes.some(isConnectionLoss);
  const said = records.toReversed().map(messageIn).find(Boolean);
  const message = said ?? messageOf(causes, thrown);
  const vendor: VendorError = { words, message, connection, records };
  if (connection && causes.some(hasAwayCode)) vendor.away = true;
  if (status !== undefined) vendor.status = status;
  const headers = error['headers'];
  if (headers instanceof Headers) vendor.headers = headers;
  return vendor;
}

/** Errors are nested: in `error`, in lists, and in the `response` that failed. */
const MOST_NESTED = 5;

/** The records of a vendor's report, outermost first. Gemini's chat completions send a list. */
function recordsIn(body: unknown): Record<string, unknown>[] {
  const records: Record<string, unknown>[] = [];
  let at = body;
  while (records.length < MOST_NESTED) {
    if (Array.isArray(at)) at = at[0];
    if (typeof at === 'string' && at !== '') return [...records, { message: at }];
    if (typeof at !== 'object' || at === null || Array.isArray(at)) return records;
    const record = at as Record<string, unknown>;
    records.push(record);
    at = record['error'] ?? record['errors'];
  }
  return records;
}

/** Google names the kind of an error in `status`, and the reason in its details. */
function wordsOf(record: Record<string, unknown>): string[] {
  const { code, type, status, details } = record;
  const reasons = Array.isArray(details) ? details.slice(0, 16).map((each) => recordOf(each)['reason']) : [];
  const said = [code, type, status, ...reasons];
  return said.flatMap((word) =>
    typeof word === 'string' || typeof word === 'number' ? [String(word).toLowerCase()] : [],
  );
}

/** An error within a stream has as its code the HTTP status that a plain answer would have had. */
function statusIn(words: readonly string[]): number | undefined {
  const code = words.find((word) => /^[45]\d\d$/.test(word));
  return code === undefined ? undefined : Number(code);
}

/**
 * FastAPI, and so many servers, put the message into `detail`, or into a list there. OpenRouter's own message is "Provider
 * returned error", and the provider's message is in `metadata`.
 */
function messageIn({ message, detail, msg, metadata }: Record<string, unknown>): string | undefined {
  const [first] = Array.isArray(detail) ? (detail as unknown[]) : [detail];
  const all = [message, msg, typeof first === 'string' ? first : recordOf(first)['msg']];
  const said = all.find((each) => typeof each === 'string' && each !== '') as string | undefined;
  const { raw } = recordOf(metadata);
  return typeof raw === 'string' && raw !== ''
    ? `${said ?? 'the provider failed'}: ${raw.slice(0, MESSAGE_LIMIT)}`
    : said;
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function causesOf(thrown: unknown): Error[] {
  const causes: Error[] = [];
  for (let at = thrown; at instanceof Error && causes.length < 6; at = at.cause) causes.push(at);
  return causes;
}

function isConnectionLoss(error: Error): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && NETWORK_CODE.test(code)) return true;
  if (error.constructor.name.startsWith('APIConnection')) return true;
  // undici's messages for a request that did not start, and for a body that was cut.
  return error instanceof TypeError && (error.message === 'fetch failed' || error.message === 'terminated');
}

function hasAwayCode(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && AWAY_CODES.includes(code);
}

function messageOf(causes: readonly Error[], thrown: unknown): string {
  if (causes.length === 0) return String(thrown);
  const parts = causes.map((cause) => {
    const { code } = cause as { code?: unknown };
    return cause.message || (typeof code === 'string' ? code : cause.name);
  });
  return [...new Set(parts)].join(': ');
}

/** Where a vendor may ask for a delay: the headers of its answer, a field of its body, or its message. */
interface DelaySource {
  /** Headers of the answer. */
  headers?: { get(name: string): string | null };
  /** The records of the error, outermost first. */
  records?: readonly Record<string, unknown>[];
  /** The vendor's message. */
  message: string;
}

/** The delay in ms that a vendor asks for; undefined if it names none. `now`: ms since the epoch, for dates. */
function retryDelayOf({ headers, records = [], message }: DelaySource, now: number): number | undefined {
  const inHeaders = headers && parseRetryAfter(headers, now);
  if (inHeaders !== undefined) return inHeaders;
  for (const record of records.toReversed()) {
    const given = delayIn(record, now);
    if (given !== undefined) return given;
  }
  return delayInWords(message, now);
}

/** Milliseconds from `retry-after-ms`, or from `retry-after`: seconds or a date. */
export function parseRetryAfter(
  headers: { get(name: string): string | null },
  now: number,
): number | undefined {
  const ms = headers.get('retry-after-ms')?.trim();
  if (ms && Number.isFinite(Number(ms))) return Math.max(0, Math.round(Number(ms)));
  const after = headers.get('retry-after')?.trim();
  if (!after) return undefined;
  return secondsOf(after) ?? whenOf(after, now);
}

/**
 * Fields that name a delay, with the milliseconds of their unit. `retryDelay`: google.rpc.RetryInfo,
 * https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto. `retry_after_seconds`: OpenRouter,
 * https://openrouter.ai/docs/api-reference/errors. `estimated_time`: Hugging Face, while a model loads.
 */
const FIELDS: Readonly<Record<string, number>> = {
  retryDelay: 1000,
  retry_delay: 1000,
  retry_after: 1000,
  retryAfter: 1000,
  retry_after_seconds: 1000,
  retryAfterSeconds: 1000,
  estimated_time: 1000,
  retry_after_ms: 1,
  retryAfterMs: 1,
};
/** Most details and upstream errors that are read from one record. */
const MOST_DETAILS = 16;

function delayIn(record: Record<string, unknown>, now: number): number | undefined {
  const { details, metadata } = record;
  const parts = [record, metadata, ...(Array.isArray(details) ? details.slice(0, MOST_DETAILS) : [details])];
  for (const part of parts) {
    if (typeof part !== 'object' || part === null) continue;
    const fields = part as Record<string, unknown>;
    for (const [name, unit] of Object.entries(FIELDS)) {
      const ms = Object.hasOwn(fields, name) ? delayOf(fields[name], unit) : undefined;
      if (ms !== undefined) return ms;
    }
    const reset = resetIn(fields['headers'], now);
    if (reset !== undefined) return reset;
    // OpenRouter passes on the text of the vendor's own error.
    const upstream = typeof fields['raw'] === 'string' ? delayInWords(fields['raw'], now) : undefined;
    if (upstream !== undefined) return upstream;
  }
  return undefined;
}

/** Google's durations are texts such as `39s`, or seconds and nanoseconds. */
function delayOf(value: unknown, unit: number): number | undefined {
  if (typeof value === 'number') return msOf(value * unit);
  if (typeof value === 'string') {
    const text = value.slice(0, LONGEST_DURATION).trim();
    return /^\d+(?:\.\d+)?$/.test(text) ? msOf(Number(text) * unit) : durationOf(text);
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { seconds, nanos = 0 } = value as { seconds?: unknown; nanos?: unknown };
  return seconds === undefined ? undefined : msOf(Number(seconds) * 1000 + Number(nanos) / 1_000_000);
}

/** OpenRouter repeats the headers of a limit in the body; the reset is a time in milliseconds since the epoch. */
function resetIn(headers: unknown, now: number): number | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const reset = Object.entries(headers).find(([name]) => name.toLowerCase() === 'x-ratelimit-reset')?.[1];
  const at = Number(reset);
  return at > now ? msOf(at - now) : undefined;
}

const LONGEST_MESSAGE = 8_192;
/** A number with a unit. Longer units come first, so that `ms` is not read as `m`. */
const AMOUNT =
  /(\d{1,9}(?:\.\d{1,12})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])/giy;
/** Words before a delay: "Please try again in 6m0s", "retry after 26 seconds", "Limit resets at: 2026-…". */
const ASKS = /(?:try again|retry(?:[-_ ]?(?:after|delay))?|wait|resets?|available)[^\d\n]{0,40}(?=\d)/gi;
/** A number after this without a unit counts seconds. */
const IN_SECONDS = /^retry[-_ ]?(?:after|delay)/i;
const NUMBER = /\d{1,9}(?:\.\d{1,12})?/y;
const BETWEEN = / ?(?:,|and)? ?/giy;
const DATE = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?/iy;
const LONGEST_DURATION = 40;

function delayInWords(message: string, now: number): number | undefined {
  const text = message.slice(0, LONGEST_MESSAGE);
  for (const { 0: asked, index } of text.matchAll(ASKS)) {
    const from = index + asked.length;
    const ms =
      durationOf(text, from) ??
      whenOf(dateAt(text, from), now) ??
      (IN_SECONDS.test(asked) ? bareSeconds(text, from) : undefined);
    if (ms !== undefined) return ms;
  }
  return undefined;
}

function bareSeconds(text: string, from: number): number | undefined {
  NUMBER.lastIndex = from;
  const [number = ''] = NUMBER.exec(text) ?? [];
  return msOf(Number(number) * 1000);
}

/** A date without a time zone counts as UTC. */
function dateAt(text: string, from: number): string {
  DATE.lastIndex = from;
  const [date = ''] = DATE.exec(text) ?? [];
  return date.replace(/ ?UTC$/i, 'Z').replace(/(:\d\d(?:\.\d+)?)$/, '$1Z');
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The sum of consecutive amounts, such as `1h2m3.4s` or `1 minute and 30 seconds`. */
function durationOf(text: string, from = 0): number | undefined {
  let total: number | undefined;
  for (let at = from; ;) {
    AMOUNT.lastIndex = at;
    const [amount, number = '', unit = ''] = AMOUNT.exec(text) ?? [];
    if (amount === undefined) return total === undefined ? undefined : msOf(total);
    const name = /^m(?:s|illi)/i.test(unit) ? 'ms' : (unit[0] ?? '').toLowerCase();
    total = (total ?? 0) + Number(number) * (UNITS[name] ?? 1);
    BETWEEN.lastIndex = at + amount.length;
    at = BETWEEN.lastIndex + (BETWEEN.exec(text)?.[0].length ?? 0);
  }
}

function secondsOf(text: string): number | undefined {
  return Number.isFinite(Number(text))
    ? msOf(Number(text) * 1000)
    : durationOf(text.slice(0, LONGEST_DURATION));
}

function whenOf(date: string, now: number): number | undefined {
  const at = Date.parse(date);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Rounded up: a request that comes a moment too early is refused again. */
function msOf(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : undefined;
}
