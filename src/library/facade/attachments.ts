import { hash } from 'node:crypto';
import { TroupeError } from '../../base/errors.ts';
import {
  type Attachment,
  IMAGE_TYPES,
  type ImageType,
  MAX_ATTACHED_BYTES,
  MAX_MESSAGE_ATTACHMENTS,
  MediaType,
} from '../../events/index.ts';
import type { AttachmentByAddress, NewAttachment, NewMessage } from '../troupe.ts';
import { readImageHeader } from './image-header.ts';
import type { Redaction } from '../../actors/log/redaction.ts';
import type { SafeFetch } from '../../base/net/safe-fetch.ts';

export const MAX_FILE_BYTES = 5 * 1_024 * 1_024;
/** Vendors accept 5 MiB of base64. A larger image would be refused again with every later prompt. */
const MAX_IMAGE_BYTES = (MAX_FILE_BYTES * 3) / 4;
/** Longer texts are stored as files, because the text of an event is part of prompts. */
export const MAX_TEXT_BYTES = 64 * 1_024;
/** Anthropic refuses larger images. */
const MAX_SIDE_PIXELS = 8_000;

const TEXT_TYPE = /^(?:text\/.+|application\/json)$/;

/** The attachments of a message, and their bytes as base64 by hash, which are stored beside the log. */
export interface ReadAttachments {
  attachments: Attachment[];
  bodies: Map<string, string>;
}

export const NOTHING_ATTACHED: ReadAttachments = { attachments: [], bodies: new Map() };

/** Checks the attachments of a client. Throws `event_invalid` or `event_too_large` with `data.path`. */
export function readAttachments(given: readonly NewAttachment[]): ReadAttachments {
  if (given.length > MAX_MESSAGE_ATTACHMENTS) {
    const message = `attachments: at most ${MAX_MESSAGE_ATTACHMENTS}, got ${given.length}`;
    throw new TroupeError('event_invalid', message, { path: 'attachments' });
  }
  const bodies = new Map<string, string>();
  let total = 0;
  const attachments = given.map((each, index) => {
    const path = `attachments.${index}`;
    const { bytes, base64 } = bytesOf(each, path);
    total += bytes.length;
    if (total > MAX_ATTACHED_BYTES)
      throw tooLarge('attachments', 'all attachments together', MAX_ATTACHED_BYTES);
    const attachment = classify(each, bytes, path);
    if (attachment.type !== 'text') bodies.set(attachment.hash, base64);
    return attachment;
  });
  return { attachments, bodies };
}

function bytesOf({ data }: NewAttachment, path: string): { bytes: Buffer; base64: string } {
  const length = typeof data === 'string' ? Math.floor((data.length * 3) / 4) - 2 : data.length;
  if (length > MAX_FILE_BYTES) throw tooLarge(path, 'a file', MAX_FILE_BYTES);
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  const base64 = bytes.toString('base64');
  // The decoder skips invalid characters, so the round trip differs.
  if (typeof data === 'string' && data !== base64)
    throw invalid(`${path}.data`, 'it is not base64 (the plain alphabet, padded, without line breaks)');
  if (bytes.length === 0) throw invalid(`${path}.data`, 'it is empty');
  if (bytes.length > MAX_FILE_BYTES) throw tooLarge(path, 'a file', MAX_FILE_BYTES);
  return { bytes, base64 };
}

function classify({ name, mediaType: declared }: NewAttachment, bytes: Buffer, path: string): Attachment {
  const { data: mediaType, error } = MediaType.safeParse(plainType(declared));
  if (mediaType === undefined)
    throw invalid(`${path}.mediaType`, error?.issues[0]?.message ?? 'it is invalid');
  const named = name === undefined ? {} : { name };
  const kept = { hash: hash('sha256', bytes, 'hex'), ...named, bytes: bytes.length };
  const image = imageOf(mediaType, bytes, path);
  if (image) return { type: 'image', mediaType: image, ...kept };
  const text = TEXT_TYPE.test(mediaType) && bytes.length <= MAX_TEXT_BYTES ? decode(bytes) : null;
  return text === null ? { type: 'file', mediaType, ...kept } : { type: 'text', mediaType, ...named, text };
}

/** The type in lower case and without parameters. */
function plainType(declared: string): string {
  const type = (declared.split(';')[0] ?? '').trim().toLowerCase();
  return type === 'image/jpg' ? 'image/jpeg' : type;
}

/** The image type of the bytes, checked against the declared type. Null: it is not shown as an image. */
function imageOf(mediaType: string, bytes: Buffer, path: string): ImageType | null {
  const isDeclared = IMAGE_TYPES.some((type) => type === mediaType);
  if (!isDeclared && mediaType !== 'application/octet-stream') return null;
  const header = readImageHeader(bytes);
  if (!header && !isDeclared) return null;
  if (header?.mediaType !== mediaType && isDeclared)
    throw invalid(
      `${path}.mediaType`,
      `it is ${mediaType}, but the bytes are ${header?.mediaType ?? 'no image'}`,
    );
  if (!header) return null;
  const { width, height } = header;
  if (Math.max(width, height) > MAX_SIDE_PIXELS)
    throw invalid(path, `the image is ${width} x ${height} pixels; at most ${MAX_SIDE_PIXELS} a side`);
  if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge(path, 'an image', MAX_IMAGE_BYTES);
  return header.mediaType;
}

/** Null if the bytes are not UTF-8. */
function decode(bytes: Buffer, { ignoreBOM = false } = {}): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM }).decode(bytes);
  } catch {
    // Another encoding, or no text.
    return null;
  }
}

function invalid(path: string, why: string): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${why}`, { path });
}

function tooLarge(path: string, what: string, limit: number): TroupeError {
  return new TroupeError('event_too_large', `${path}: ${what} may have at most ${limit} bytes`, {
    path,
    limit,
  });
}

const REDACTED_TYPE = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|x-ndjson)\b)/;

/** Redacts attached texts before anything is derived from them. Images and other files are not inspected. */
export function redactAttachments(
  attachments: readonly NewAttachment[],
  author: NewMessage['author'],
  redaction: Redaction | undefined,
): readonly NewAttachment[] {
  if (!redaction) return attachments;
  return attachments.map((each) => {
    const text = REDACTED_TYPE.test(plainType(each.mediaType)) ? redactableText(each) : null;
    if (text === null) return each;
    const made = redaction.text(text, { kind: 'message', author });
    return made === text ? each : { ...each, data: Buffer.from(made) };
  });
}

/** Null if the bytes are not UTF-8 or the base64 is invalid: those are refused later, or stored as files. */
function redactableText({ data }: NewAttachment): string | null {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  if (typeof data === 'string' && bytes.toString('base64') !== data) return null;
  return decode(bytes, { ignoreBOM: true });
}

/** Time limit for all attachments of a message: its sender waits for them. */
const TIMEOUT_MS = 60_000;
const MAX_NAME = 255;

/**
 * Fetches the attachments given by address, one after the other, so that at most the bytes of one message are in memory.
 * Without `fetch` settings `fetch` is null, and addresses are refused. Throws `event_invalid`, `event_too_large`,
 * `address_refused` and `address_unreachable`, with `data.path`.
 */
export async function fetchAttachments(
  given: readonly (NewAttachment | AttachmentByAddress)[],
  fetch: SafeFetch | null,
): Promise<readonly NewAttachment[]> {
  if (given.length === 0) return given as readonly NewAttachment[];
  // `readAttachments` refuses too many attachments, so none of them is fetched.
  const isTooMany = given.length > MAX_MESSAGE_ATTACHMENTS;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const attachments: NewAttachment[] = [];
  let room = MAX_ATTACHED_BYTES;
  for (const [index, each] of given.entries()) {
    if (!('url' in each)) {
      attachments.push(each);
      continue;
    }
    const path = `attachments.${index}`;
    if (!fetch) {
      const message = `${path}.url: fetching is off; name the allowed hosts in \`fetch: { allow }\` of the agents file, or send \`data\``;
      throw new TroupeError('event_invalid', message, { path: `${path}.url` });
    }
    const maxBytes = Math.min(MAX_FILE_BYTES, room);
    const fetched: NewAttachment = isTooMany
      ? { mediaType: 'text/plain', data: '' }
      : await readAddress(each, path, { fetch, signal, maxBytes });
    room -= fetched.data.length;
    attachments.push(fetched);
  }
  return attachments;
}

async function readAddress(
  { url, name = nameIn(url), mediaType }: AttachmentByAddress,
  path: string,
  { fetch, signal, maxBytes }: { fetch: SafeFetch; signal: AbortSignal; maxBytes: number },
): Promise<NewAttachment> {
  const { status, headers, body, isCut } = await fetch(url, { signal, maxBytes }).catch((thrown: unknown) => {
    throw thrown instanceof TroupeError ? atPath(thrown, path) : thrown;
  });
  if (status !== 200) {
    const message = `${path}.url: its server answered ${status}, not 200`;
    throw new TroupeError('event_invalid', message, { path: `${path}.url`, status });
  }
  if (isCut) {
    const message = `${path}.url: it has more than ${maxBytes} bytes, the rest of the limit`;
    throw new TroupeError('event_too_large', message, { path, limit: maxBytes });
  }
  const declared = mediaType ?? headers['content-type'] ?? 'application/octet-stream';
  return { ...(name !== undefined && { name }), mediaType: declared, data: body };
}

function atPath({ code, message, data }: TroupeError, path: string): TroupeError {
  return new TroupeError(code, `${path}.url: ${message}`, { ...data, path: `${path}.url` });
}

function nameIn(url: string): string | undefined {
  const last = URL.parse(url)?.pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last).slice(0, MAX_NAME).toWellFormed() || undefined;
  } catch {
    // A stray % is not an escape.
    return last.slice(0, MAX_NAME) || undefined;
  }
}
