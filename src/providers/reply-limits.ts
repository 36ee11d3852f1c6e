import { TroupeError } from '../base/errors.ts';

const MEBIBYTE = 1_048_576;
/** Timers overflow above this. */
export const MAX_SILENCE_MS = 86_400_000;
/** Limits of one model answer. An answer beyond one of them fails with `provider_reply_too_long`. */
export interface ReplyLimits {
  /** Bytes of one line or event as received. Default 4 MiB. */
  eventBytes: number;
  /** Bytes of the whole body, decoded. Default 256 MiB. */
  receivedBytes: number;
  /** Bytes of text; also bounded by the most that `maxOutputTokens` can amount to. Default 4 MiB. */
  textBytes: number;
  /** Bytes of reasoning. Default 4 MiB. */
  reasoningBytes: number;
  /** Bytes of the arguments of all calls together. Default 4 MiB. */
  argumentBytes: number;
  /** Number of tool calls. Default 256. */
  calls: number;
  /** Longest silence before and within an answer, ms. A longer one may be a lost connection, so the call is retried. Default 300,000. */
  silenceMs: number;
  /** Longest answer, ms. Default 3,600,000. */
  totalMs: number;
}

/** Omitted fields default to `DEFAULT_REPLY_LIMITS`. */
export type ReplyLimitSettings = { [Limit in keyof ReplyLimits]?: ReplyLimits[Limit] | undefined };

export const DEFAULT_REPLY_LIMITS: ReplyLimits = {
  eventBytes: 4 * MEBIBYTE,
  receivedBytes: 256 * MEBIBYTE,
  textBytes: 4 * MEBIBYTE,
  reasoningBytes: 4 * MEBIBYTE,
  argumentBytes: 4 * MEBIBYTE,
  calls: 256,
  silenceMs: 300_000,
  totalMs: 3_600_000,
};

/** The settings, with defaults for those that are left out. */
export function replyLimits(settings: ReplyLimitSettings = {}): ReplyLimits {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return { ...DEFAULT_REPLY_LIMITS, ...(Object.fromEntries(given) as Partial<ReplyLimits>) };
}

const WORDS: Readonly<Record<keyof ReplyLimits, (max: number) => string>> = {
  eventBytes: (max) => `an event of more than ${max} bytes`,
  receivedBytes: (max) => `more than ${max} bytes`,
  textBytes: (max) => `more than ${max} bytes of text`,
  reasoningBytes: (max) => `more than ${max} bytes of reasoning`,
  argumentBytes: (max) => `more than ${max} bytes of arguments of calls`,
  calls: (max) => `more than ${max} calls`,
  silenceMs: (max) => `a silence of more than ${max} ms`,
  totalMs: (max) => `taken more than ${max} ms`,
};

/** Twice the longest tokens of current tokenizers, which are runs of one letter; usual text has about four bytes. */
const BYTES_PER_TOKEN = 256;
const SPARE_BYTES = 65_536;

/** The limits for a call with this many output tokens: no context window holds an answer far beyond them. */
export function limitsFor(limits: ReplyLimits, maxOutputTokens: number): ReplyLimits {
  const asked = maxOutputTokens * BYTES_PER_TOKEN + SPARE_BYTES;
  return { ...limits, textBytes: Math.min(limits.textBytes, asked) };
}

/** The error for an answer beyond a limit. It names the limit. */
export function replyTooLong(limit: keyof ReplyLimits, limits: ReplyLimits): TroupeError {
  const max = limits[limit];
  const message = `the answer has ${WORDS[limit](max)} (replyLimits.${limit}) and was broken off`;
  return new TroupeError('provider_reply_too_long', message, { limit, max });
}

/** Counts the buffered parts of one answer. Throws `provider_reply_too_long`. */
export class ReplyMeter {
  /** Limits of this answer. */
  readonly limits: ReplyLimits;
  #text = 0;
  #reasoning = 0;
  #arguments = 0;
  #calls = 0;

  constructor(limits: ReplyLimits) {
    this.limits = limits;
  }

  /** Bytes of text, reasoning and arguments so far. */
  get said(): number {
    return this.#text + this.#reasoning + this.#arguments;
  }

  /** Counts a piece of text. */
  text(said: unknown): void {
    this.#text += bytesOf(said);
    if (this.#text > this.limits.textBytes) throw replyTooLong('textBytes', this.limits);
  }

  /** Counts a piece of reasoning. */
  reasoning(said: unknown): void {
    this.#reasoning += bytesOf(said);
    if (this.#reasoning > this.limits.reasoningBytes) throw replyTooLong('reasoningBytes', this.limits);
  }

  /** Counts a piece of a call's arguments. */
  arguments(said: unknown): void {
    this.#arguments += bytesOf(said);
    if (this.#arguments > this.limits.argumentBytes) throw replyTooLong('argumentBytes', this.limits);
  }

  /** Counts a call. */
  call(): void {
    this.#calls += 1;
    if (this.#calls > this.limits.calls) throw replyTooLong('calls', this.limits);
  }
}

/** A value that is not text counts zero, and is refused later. */
function bytesOf(said: unknown): number {
  return typeof said === 'string' ? Buffer.byteLength(said) : 0;
}
