import { hash } from 'node:crypto';
import { TroupeError } from '../errors.ts';
import {
  type Attachment,
  IMAGE_TYPES,
  type ImageType,
  MAX_ATTACHED_BYTES,
  MAX_MESSAGE_ATTACHMENTS,
  MediaType,
} from '../events/index.ts';
import type { AttachmentByAddress, NewAttachment, NewMessage } from '../troupe.ts';
import { readImageHeader } from './image-header.ts';
import type { Redaction } from '../actors/log/redaction.ts';
import type { SafeFetch } from '../net/safe-fetch.ts';

export const MAX_FILE_BYTES = 5 * 1_024 * 1_024;
/** Vendors take an image of 5 MiB as base64; one that they refuse would be refused with every later prompt. */
export const MAX_IMAGE_BYTES = (MAX_FILE_BYTES * 3) / 4;
/** A longer text is kept as a file: what is in an event is in prompts. */
export const MAX_TEXT_BYTES = 64 * 1_024;
/** Anthropic refuses larger ones. */
const MAX_SIDE_PIXELS = 8_000;

const TEXT_TYPE = /^(?:text\/.+|application\/json)$/;

/** What comes with a message, and the bytes that are kept beside the log, as base64 by hash. */
export interface ReadAttachments {
  attachments: Attachment[];
  bodies: Map<string, string>;
}

/** Checks what a client attached. Throws `event_invalid` or `event_too_large`; `data.path` says which piece. */
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
  // Whatever the decoder passed over is missing in what it gives back.
  if (typeof data === 'string' && data !== base64)
    throw invalid(`${path}.data`, 'it is not base64 (the plain alphabet, padded, without line breaks)');
  if (bytes.length === 0) throw invalid(`${path}.data`, 'it is empty');
  if (bytes.length > MAX_FILE_BYTES) throw tooLarge(path, 'a file', MAX_FILE_BYTES);
  return { bytes, base64 };
}

function classify({ name, mediaType: said }: NewAttachment, bytes: Buffer, path: string): Attachment {
  const { data: mediaType, error } = MediaType.safeParse(plainType(said));
  if (mediaType === undefined) throw invalid(`${path}.mediaType`, error?.issues[0]?.message ?? 'it is none');
  const named = name === undefined ? {} : { name };
  const kept = { hash: hash('sha256', bytes, 'hex'), ...named, bytes: bytes.length };
  const image = imageOf(mediaType, bytes, path);
  if (image) return { type: 'image', mediaType: image, ...kept };
  const text = TEXT_TYPE.test(mediaType) && bytes.length <= MAX_TEXT_BYTES ? decode(bytes) : null;
  return text === null ? { type: 'file', mediaType, ...kept } : { type: 'text', mediaType, ...named, text };
}

/** In lower case and without parameters. */
export function plainType(said: string): string {
  const type = (said.split(';')[0] ?? '').trim().toLowerCase();
  return type === 'image/jpg' ? 'image/jpeg' : type;
}

/** What the bytes are, held against what was said of them; null for what is shown to nobody. */
function imageOf(mediaType: string, bytes: Buffer, path: string): ImageType | null {
  const isSaid = IMAGE_TYPES.some((type) => type === mediaType);
  if (!isSaid && mediaType !== 'application/octet-stream') return null;
  const header = readImageHeader(bytes);
  if (!header && !isSaid) return null;
  if (header?.mediaType !== mediaType && isSaid)
    throw invalid(
      `${path}.mediaType`,
      `it says ${mediaType}, and the bytes are ${header?.mediaType ?? 'no image'}`,
    );
  if (!header) return null;
  const { width, height } = header;
  if (Math.max(width, height) > MAX_SIDE_PIXELS)
    throw invalid(path, `the image is ${width} x ${height} pixels; at most ${MAX_SIDE_PIXELS} a side`);
  if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge(path, 'an image', MAX_IMAGE_BYTES);
  return header.mediaType;
}

/** Null for what is not UTF-8. */
function decode(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // It is another encoding, or no text at all: then it is a file like others.
    return null;
  }
}

function invalid(path: string, why: string): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${why}`, { path });
}

function tooLarge(path: string, what: string, limit: number): TroupeError {
  return new TroupeError('event_too_large', `${path}: ${what} may have ${limit} bytes`, { path, limit });
}

const REDACTED_TYPE = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|x-ndjson)\b)/;

/** What comes with a message, its texts redacted before anything is made of them. Nobody looks into images and other files. */
export function attachedBy(
  { attachments, author }: { attachments: readonly NewAttachment[]; author: NewMessage['author'] },
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

/** Null for what is not UTF-8, or no base64: that is refused later, or kept as a file. */
function redactableText({ data }: NewAttachment): string | null {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  if (typeof data === 'string' && bytes.toString('base64') !== data) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** All attachments of one message together: its sender waits for them. */
const TIMEOUT_MS = 60_000;
const MAX_NAME = 255;

/**
 * Puts in place of each address what is there. `fetch` is null where the definition has no `fetch` settings: then nothing
 * is fetched for anybody. Throws what `readAttachments` throws, and `address_refused` and `address_unreachable`, with
 * `data.path`. One after the other, so that a message holds no more in memory than it may have.
 */
export async function fetchAttachments(
  given: readonly (NewAttachment | AttachmentByAddress)[],
  fetch: SafeFetch | null,
): Promise<readonly NewAttachment[]> {
  // How many there may be is told by who reads them; nothing is fetched for too many.
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
      const message = `${path}.url: nothing is fetched here; name the hosts in \`fetch: { allow }\` of the agents file, or send \`data\``;
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
    const message = `${path}.url: it has more than ${maxBytes} bytes, which is all there is room for`;
    throw new TroupeError('event_too_large', message, { path, limit: maxBytes });
  }
  const said = mediaType ?? headers['content-type'] ?? 'application/octet-stream';
  return { ...(name !== undefined && { name }), mediaType: said, data: body };
}

function atPath({ code, message, data }: TroupeError, path: string): TroupeError {
  return new TroupeError(code, `${path}.url: ${message}`, { ...data, path: `${path}.url` });
}

function nameIn(url: string): string | undefined {
  const last = URL.parse(url)?.pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last).slice(0, MAX_NAME).toWellFormed() || undefined;
  } catch {
    // Not every % stands for a character.
    return last.slice(0, MAX_NAME) || undefined;
  }
}
