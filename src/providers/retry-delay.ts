/** A delay in milliseconds is asked for in the headers of an answer, in a field of its body, or in words. */
export interface DelaySource {
  /** Of the answer. */
  headers?: { get(name: string): string | null };
  /** The records of the error, from the outside to the inside. */
  records?: readonly Record<string, unknown>[];
  /** The vendor's words. */
  message: string;
}

/** The delay that a vendor asks for; undefined if it names none. `now`: ms since the epoch, for dates. */
export function retryDelayOf(
  { headers, records = [], message }: DelaySource,
  now: number,
): number | undefined {
  const inHeaders = headers && parseRetryAfter(headers, now);
  if (inHeaders !== undefined) return inHeaders;
  for (const record of records.toReversed()) {
    const given = delayIn(record, now);
    if (given !== undefined) return given;
  }
  return delayInWords(message, now);
}

/** Reads `retry-after-ms`, or `retry-after` in seconds, as a duration or as a date. */
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
 * Fields of bodies, with the milliseconds of their unit. `retryDelay`: google.rpc.RetryInfo,
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
/** Details and upstream errors that are read in one record. */
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
    // OpenRouter passes the text of the vendor's own error on.
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

/** OpenRouter repeats the headers of a limit in the body: the time of the reset in milliseconds. */
function resetIn(headers: unknown, now: number): number | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const reset = Object.entries(headers).find(([name]) => name.toLowerCase() === 'x-ratelimit-reset')?.[1];
  const at = Number(reset);
  return at > now ? msOf(at - now) : undefined;
}

const LONGEST_MESSAGE = 8_192;
/** A number with a unit. Longer units come first. */
const AMOUNT =
  /(\d{1,9}(?:\.\d{1,12})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])/giy;
/** What stands before the delay in words: "Please try again in 6m0s", "retry after 26 seconds", "Limit resets at: 2026-…". */
const ASKS = /(?:try again|retry(?:[-_ ]?(?:after|delay))?|wait|resets?|available)[^\d\n]{0,40}(?=\d)/gi;
/** A number behind this without a unit is one of seconds. */
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

/** A date without a zone is one of UTC. */
function dateAt(text: string, from: number): string {
  DATE.lastIndex = from;
  const [date = ''] = DATE.exec(text) ?? [];
  return date.replace(/ ?UTC$/i, 'Z').replace(/(:\d\d(?:\.\d+)?)$/, '$1Z');
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Amounts one behind the other, such as `1h2m3.4s` or `1 minute and 30 seconds`. */
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

/** Rounded up: a try that comes a moment too early is refused again. */
function msOf(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : undefined;
}
