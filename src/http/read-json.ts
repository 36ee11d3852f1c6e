import type { Context } from 'hono';
import type { Full } from '../library/access/index.ts';
import { TroupeError } from '../base/errors.ts';
import { MAX_ATTACHED_BYTES } from '../events/index.ts';
import { callerOf } from './caller.ts';
import { rateLimited, Refusal } from './refusal.ts';

const MAX_BODY_BYTES = 1_048_576;
/** A message with the largest attachments as base64. */
const MAX_MESSAGE_BYTES = MAX_BODY_BYTES + Math.ceil(MAX_ATTACHED_BYTES / 3) * 4;
/** Larger bodies take milliseconds to parse, so they queue with other long work. */
const LONG_BODY_BYTES = 65_536;
const MAX_JSON_DEPTH = 64;
const MAX_VALUES = 20_000;
/** Limit for a chat, which may have thousands of messages. */
const MAX_CHAT_VALUES = 200_000;
/** Limit for settings, such as a key or a webhook. */
export const SMALL_BODY_BYTES = 65_536;
const BODIES_RETRY_MS = 1_000;

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

const EMPTY =
  'the body is empty, or a parser of the server around Troupe has read it: hand it on as "body" of the request, see docs/how-to/mounting.md';

interface BodyLimits {
  bytes: number;
  values: number;
}

/** Parses the body. Each limit is checked before the work that it bounds. */
export async function readJson(context: Context, bytes: number = MAX_BODY_BYTES): Promise<unknown> {
  return (await readValue(context, { bytes, values: MAX_VALUES })).value;
}

/** Parses a message. Its text has the limit of any other body; attachments have a limit of their own. */
export async function readMessage(context: Context): Promise<unknown> {
  const { value, size } = await readValue(context, { bytes: MAX_MESSAGE_BYTES, values: MAX_VALUES });
  if (size - attachedBytes(value) > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
  return value;
}

/** Parses one message of another protocol, where attachments may stand anywhere. */
export async function readOneMessage(context: Context): Promise<unknown> {
  return (await readValue(context, { bytes: MAX_MESSAGE_BYTES, values: MAX_VALUES })).value;
}

/** Parses the messages of a chat. Clients send all of them, though only the newest is read. */
export async function readMessages(context: Context): Promise<unknown> {
  return (await readValue(context, { bytes: MAX_MESSAGE_BYTES, values: MAX_CHAT_VALUES })).value;
}

/** Checks the length of one message's text. Throws `event_too_large`. */
export function checkWords(text: string): void {
  if (Buffer.byteLength(text) > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
}

/** Base64 has one byte per character. Text with wider characters is invalid, and is refused later. */
function attachedBytes(body: unknown): number {
  const { attachments } = Object(body) as { attachments?: unknown };
  if (!Array.isArray(attachments)) return 0;
  return attachments.reduce((sum: number, each) => {
    const { data } = Object(each) as { data?: unknown };
    return typeof data === 'string' ? sum + data.length : sum;
  }, 0);
}

async function readValue(
  context: Context,
  { bytes: limit, values }: BodyLimits,
): Promise<{ value: unknown; size: number }> {
  const request = context.req.raw;
  const type = request.headers.get('content-type') ?? '';
  if (!JSON_TYPE.test(type)) {
    const message = `the body must be JSON, with content-type application/json, not "${type}"`;
    throw new Refusal(415, 'content_type_refused', message, { type });
  }
  const encoding = request.headers.get('content-encoding') ?? 'identity';
  if (encoding !== 'identity') {
    throw new Refusal(415, 'content_type_refused', 'compressed bodies are not accepted', { encoding });
  }
  const bytes = await readBytes(context, limit);
  if (bytes.length === 0) throw new TroupeError('event_invalid', EMPTY, { path: '' });
  if (bytes.length > LONG_BODY_BYTES) await callerOf(context).traffic.slices.next();
  checkBounds(bytes, values);
  const text = decode(bytes);
  try {
    return { value: JSON.parse(text), size: bytes.length };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('event_invalid', `the body is not JSON: ${reason}`, { path: '' }, { cause });
  }
}

/** Throws before anything is built from the body. */
function checkBounds(bytes: Uint8Array, values: number): void {
  switch (exceeded(bytes, { depth: MAX_JSON_DEPTH, values, bare: MAX_BODY_BYTES })) {
    case null:
      return;
    case 'depth': {
      const message = `the body is nested deeper than ${MAX_JSON_DEPTH} levels`;
      throw new TroupeError('event_invalid', message, { path: '', limit: MAX_JSON_DEPTH });
    }
    case 'values': {
      const message = `the body has more than ${values} values; send less at once`;
      throw new TroupeError('event_too_large', message, { limit: values });
    }
    case 'bare':
      throw tooLarge(MAX_BODY_BYTES);
  }
}

async function readBytes(context: Context, limit: number): Promise<Uint8Array> {
  const request = context.req.raw;
  if (Number(request.headers.get('content-length') ?? 0) > limit) throw tooLarge(limit);
  const { principal, traffic } = callerOf(context);
  const held = traffic.bodies.open(principal);
  const body = new GrowingBuffer();
  try {
    for await (const chunk of chunksOf(request)) {
      if (body.size + chunk.length > limit) throw tooLarge(limit);
      const over = held.grow(chunk.length);
      if (over) throw tooManyBodies(over);
      body.append(chunk);
      if (body.isCrumbled()) throw tooManyPieces(limit);
    }
    return body.bytes();
  } finally {
    held.end();
  }
}

/** The chunks of the body. Throws `event_invalid` if the sender disconnects early, which is not the server's fault. */
export async function* chunksOf(request: Request): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of request.body ?? []) yield chunk as Uint8Array;
  } catch (cause) {
    throw new TroupeError('event_invalid', 'the body ended early', { path: '' }, { cause });
  }
}

function tooLarge(limit: number): TroupeError {
  const message = `the body is larger than ${limit} bytes; store large content elsewhere and send its URL`;
  return new TroupeError('event_too_large', message, { limit });
}

function tooManyBodies({ full, limit }: Full): Refusal {
  const whose = full === 'process' ? 'this process' : `one ${full}`;
  return rateLimited(`at most ${limit} bytes of request bodies at once for ${whose}`, limit, BODIES_RETRY_MS);
}

function tooManyPieces(limit: number): TroupeError {
  const message = 'the body arrives in too many tiny chunks; send larger ones';
  return new TroupeError('event_too_large', message, { limit });
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new TroupeError('event_invalid', 'the body is not UTF-8', { path: '' }, { cause });
  }
}

const FIRST_BYTES = 4_096;
/** Number of pieces that may have any size. */
const FREE_PIECES = 1_000;
/** Smallest average size of further pieces, because each piece costs as much as hundreds of bytes. */
const MIN_PIECE_BYTES = 64;

/**
 * Collects pieces in one buffer. Pieces are copied, not kept: a list of one-byte pieces takes hundreds of times their size.
 * The buffer doubles as it fills, and ignores announced sizes.
 */
export class GrowingBuffer {
  #bytes = new Uint8Array(FIRST_BYTES);
  #pieces = 0;
  size = 0;

  append(piece: Uint8Array): void {
    const size = this.size + piece.length;
    if (size > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(size, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.size));
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.size);
    this.size = size;
    this.#pieces += 1;
  }

  /** Whether there are more and smaller pieces than any well-behaved client sends. */
  isCrumbled(): boolean {
    return this.#pieces > FREE_PIECES && this.size < this.#pieces * MIN_PIECE_BYTES;
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.size);
  }
}

interface JsonBounds {
  depth: number;
  /** Number of values, including keys of objects: each becomes an object, however few bytes it has. */
  values: number;
  /** Bytes outside of strings: punctuation, numbers and white space. */
  bare: number;
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The first limit that a JSON text in UTF-8 exceeds, or null. One pass over the bytes, which builds nothing and checks no
 * syntax: parsing a text of tiny lists takes thirty times its size, and a second per ten megabytes.
 */
export function exceeded(bytes: Uint8Array, limits: JsonBounds): keyof JsonBounds | null {
  let [depth, values, bare] = [0, 1, 0];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    if (++bare > limits.bare) return 'bare';
    if (byte === COMMA || byte === COLON) values += 1;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values += 1;
      if (++depth > limits.depth) return 'depth';
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    if (values > limits.values) return 'values';
  }
  return null;
}

function endOfString(bytes: Uint8Array, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === BACKSLASH) at += 1;
    else if (bytes[at] === QUOTE) return at;
  }
  return bytes.length;
}
