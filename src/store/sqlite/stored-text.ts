/**
 * SQLite keeps text as UTF-8, which has no lone surrogates. Text that has them is stored as a blob of its UTF-16
 * units; all other text as text. One text has one stored form, so stored values can be compared.
 */
export type StoredText = string | Uint8Array;

export function toStored(text: string): StoredText {
  return text.isWellFormed() ? text : Buffer.from(text, 'utf16le');
}

export function fromStored(stored: StoredText): string {
  if (typeof stored === 'string') return stored;
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('utf16le');
}
