import type { ModelFailure } from './provider.ts';
import { createRedact } from './redact.ts';
import { policyOf } from '../base/errors.ts';
import { type DelaySource, retryDelayOf } from './retry-delay.ts';

/** A failed call as its vendor or SDK described it, without any vendor's types. */
export interface VendorError extends DelaySource {
  /** Of the HTTP response. */
  status?: number;
  /** The vendor's error codes and types, in lower case. */
  words: readonly string[];
  /** No response from the vendor at all: refused, reset, timed out, cut. */
  connection: boolean;
  /** A connection failure that may pass: no server listens, or it hung up. Wrong names and certificates stay wrong. */
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
/** Those in capitals at Google: https://cloud.google.com/apis/design/errors. */
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

/** Decides the code, and with it what the engine does (see errors.ts). The first rule that holds wins: specific before general. */
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
  // Before 403: a project without access to a model gets 403 with this code.
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

/** A proxy whose server is down, or a server that is still loading its model. Worth minutes of waiting. */
function isAway({ status, words, message, away }: VendorError, opened: boolean): boolean {
  if (opened) return false;
  if (away || status === 502) return true;
  return status === 503 && !BUSY.test(message) && !words.some((word) => BUSY_WORDS.includes(word));
}

interface ClassifyOptions {
  /** The answer had begun, so a lost connection counts as a truncation. */
  opened: boolean;
  /** For dates in retry-after; milliseconds since the epoch. */
  now: number;
  /** Texts that must not reach the log: some servers repeat the key that they refuse. */
  secrets?: readonly string[];
}

/** The failure of a call, with the code that decides what the engine does. */
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

/** A message as people may see it: without keys, which some servers repeat, and of bounded length. */
export function shownMessage(message: string, secrets: readonly string[]): string {
  // Cut last: half of a key is not recognised.
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

/** Errors stand in one another: in `error`, in lists of them, and in the `response` that failed. */
const MOST_NESTED = 5;

/** The records of a vendor's report, from the outside to the inside. Gemini's chat completions send it in a list. */
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

/** Google names the kind of an error in its `status`, and the reason among its details. */
function wordsOf(record: Record<string, unknown>): string[] {
  const { code, type, status, details } = record;
  const reasons = Array.isArray(details) ? details.slice(0, 16).map((each) => recordOf(each)['reason']) : [];
  const said = [code, type, status, ...reasons];
  return said.flatMap((word) =>
    typeof word === 'string' || typeof word === 'number' ? [String(word).toLowerCase()] : [],
  );
}

/** Within a stream the code of an error is the status that its answer would have had. */
function statusIn(words: readonly string[]): number | undefined {
  const code = words.find((word) => /^[45]\d\d$/.test(word));
  return code === undefined ? undefined : Number(code);
}

/**
 * FastAPI, and with it many servers, put the words into `detail`, or into a list of them. OpenRouter says "Provider returned error"
 * and passes on what the provider said.
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
  // undici's messages for a request that did not start and for a body that was cut.
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
