import { Binary } from 'mongodb';

/**
 * BSON text is UTF-8, which has no lone surrogates. Text that has them is stored as binary data of its UTF-16 units;
 * all other text as text. One text has one stored form, so stored values can be compared and be keys.
 */
export type StoredText = string | Binary;

export function toStored(text: string): StoredText {
  return text.isWellFormed() ? text : new Binary(Buffer.from(text, 'utf16le'));
}

/** Null if it is neither form: somebody else wrote it. */
export function fromStored(stored: unknown): string | null {
  if (typeof stored === 'string') return stored;
  return stored instanceof Binary ? bytesOf(stored).toString('utf16le') : null;
}

export function bytesOf({ buffer, position }: Binary): Buffer {
  return Buffer.from(buffer.buffer, buffer.byteOffset, position);
}
