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
import type { NewAttachment } from '../troupe.ts';
import { readImageHeader } from './image-header.ts';

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
