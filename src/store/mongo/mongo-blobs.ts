import { hash, randomUUID } from 'node:crypto';
import { Binary, type Collection, type Filter, type OptionalUnlessRequiredId } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import { type Background, isDuplicateKey } from './mongo-error.ts';

/**
 * Stores texts that are too large for their documents, in chunks.
 *  B1  A blob is written before the document that points to it, and never changes. At most one document points to a blob,
 *      and the blob names this document.
 *  B2  Its first chunk is `pending` until the document is known to be written. A blob that is pending for a day without
 *      such a document is removed, so what a crashed writer leaves behind is cleaned up.
 *  B3  A blob is removed as soon as no document points to it. A reader that misses it must read the document again.
 */
interface Owner {
  /** Name of the collection in the database. `registers` has the entries. */
  in: 'events' | 'actors' | 'registers';
  id: StoredText;
}

export interface BlobRef {
  ref: string;
  chunks: number;
  encoding: 'utf8' | 'utf16le';
  /** Hash of the text, so that it can be compared without being read. */
  hash: string;
}

/** The fields by which a document holds a text: inline, or as a reference to a blob. */
export type Held = { data: StoredText; blob?: never } | { blob: BlobRef; data?: never };

export interface BlobDoc {
  _id: string;
  data: Binary;
  /** The document that points to the blob. In the first chunk only. */
  of?: Owner;
  chunks?: number;
  pending?: Date;
  /** When the server may remove the chunk. Only for texts of expiring entries. */
  expires?: Date;
}

/** Longer texts become blobs. This limit must never change, because `filter` compares inline texts and blobs differently. */
const MAX_INLINE_UNITS = 256 * 1024;
/** The server allows 16 MiB per document. */
const CHUNK_BYTES = 4 * 1024 * 1024;
const PENDING_MS = 24 * 3_600_000;
const COLLECT_EVERY_MS = 3_600_000;
const COLLECT_AT_ONCE = 200;

export interface Blobs {
  /** Returns the fields for the document. Writes a blob if the text is large. */
  hold(text: string, owner: Owner, expires?: Date): Promise<Held>;
  /** The filter that finds documents with this text. */
  filter(text: string): { data: StoredText } | { 'blob.hash': string };
  /** The text; null if it is missing or has an unknown form. */
  read(doc: { data?: unknown; blob?: unknown }): Promise<string | null>;
  /** Tells that the document that points to the blob is written, so that the blob is no longer pending. */
  keep(held: { blob?: BlobRef | undefined }): void;
  /** Removes a blob in the background. No document may point to it, now or later. */
  drop(held: { blob?: unknown }): void;
  /** Like `drop`, but resolves when the blob is removed. */
  remove(held: { blob?: unknown }): Promise<void>;
}

export function createBlobs(
  chunks: Collection<BlobDoc>,
  isPointedTo: (owner: Owner, ref: string) => Promise<boolean>,
  { clock, background }: { clock: Clock; background: Background },
): Blobs {
  const parts = createChunkedTexts(chunks);
  let collected = Number.NEGATIVE_INFINITY;

  async function collect(): Promise<void> {
    const before = new Date(clock.now() - PENDING_MS);
    const old = await chunks
      .find({ pending: { $lt: before } }, { projection: { of: 1, chunks: 1 } })
      .limit(COLLECT_AT_ONCE)
      .toArray();
    for (const { _id, of, chunks: count } of old) {
      const ref = _id.slice(0, _id.lastIndexOf(':'));
      if (of && (await isPointedTo(of, ref))) await chunks.updateOne({ _id }, { $unset: { pending: '' } });
      else await parts.remove({ ref, chunks: count ?? 1 });
    }
  }

  function collectSometimes(): void {
    const now = clock.monotonic();
    if (now - collected < COLLECT_EVERY_MS) return;
    collected = now;
    background.run('removing large texts that nothing points to', collect);
  }

  return {
    async hold(text, owner, expires) {
      if (text.length <= MAX_INLINE_UNITS) return { data: toStored(text) };
      collectSometimes();
      return { blob: await parts.write(text, { owner, expires, now: clock.now() }) };
    },
    filter: (text) =>
      text.length <= MAX_INLINE_UNITS ? { data: toStored(text) } : { 'blob.hash': hashOf(text) },
    async read({ data, blob }) {
      return isBlobRef(blob) ? parts.read(blob) : fromStored(data);
    },
    keep(held) {
      if (!held.blob) return;
      const _id = idsOf(held.blob)[0]!;
      background.run('marking a large text as kept', () =>
        chunks.updateOne({ _id }, { $unset: { pending: '' } }),
      );
    },
    drop({ blob }) {
      if (isBlobRef(blob)) background.run('removing a large text', () => parts.remove(blob));
    },
    async remove({ blob }) {
      if (isBlobRef(blob)) await parts.remove(blob);
    },
  };
}

/** Inserts a document that holds a text. Returns false if its key is taken. */
export async function insertDoc<D extends { blob?: BlobRef }>(
  collection: Collection<D>,
  blobs: Blobs,
  doc: OptionalUnlessRequiredId<D>,
): Promise<boolean> {
  try {
    await collection.insertOne(doc);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    blobs.drop(doc);
    return false;
  }
  blobs.keep(doc);
  return true;
}

/** Removes documents that hold texts. Returns their number. */
export async function removeDocs<D extends { blob?: BlobRef }>(
  collection: Collection<D>,
  blobs: Blobs,
  filter: Filter<D>,
): Promise<number> {
  const large = await collection
    .find({ ...filter, blob: { $exists: true } }, { projection: { blob: 1 } })
    .toArray();
  const { deletedCount } = await collection.deleteMany(filter);
  // A writer that replaced a text meanwhile has dropped the old blob itself. The blob of a new document stays pending.
  for (const doc of large) blobs.drop(doc);
  return deletedCount;
}

function createChunkedTexts(chunks: Collection<BlobDoc>) {
  async function write(
    text: string,
    { owner, expires, now }: { owner: Owner; expires: Date | undefined; now: number },
  ): Promise<BlobRef> {
    const encoding = text.isWellFormed() ? 'utf8' : 'utf16le';
    const bytes = Buffer.from(text, encoding);
    const blob: BlobRef = {
      ref: randomUUID(),
      chunks: Math.ceil(bytes.length / CHUNK_BYTES),
      encoding,
      hash: hashOf(text),
    };
    const pending = new Date(now);
    for (const [index, _id] of idsOf(blob).entries()) {
      const data = new Binary(bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES));
      const first = index === 0 ? { of: owner, chunks: blob.chunks, pending } : {};
      await insertOnce({ _id, data, ...first, ...(expires ? { expires } : {}) });
    }
    return blob;
  }

  /** The id is random, so a taken id means that an earlier attempt of the driver succeeded after all. */
  async function insertOnce(doc: BlobDoc): Promise<void> {
    try {
      await chunks.insertOne(doc);
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
  }

  async function read(blob: BlobRef): Promise<string | null> {
    const parts: Buffer[] = [];
    for (const _id of idsOf(blob)) {
      const data: unknown = (await chunks.findOne({ _id }, { projection: { data: 1 } }))?.data;
      if (!(data instanceof Binary)) return null;
      parts.push(bytesOf(data));
    }
    return Buffer.concat(parts).toString(blob.encoding);
  }

  async function remove(blob: Pick<BlobRef, 'ref' | 'chunks'>): Promise<void> {
    await chunks.deleteMany({ _id: { $in: idsOf(blob) } });
  }

  return { write, read, remove };
}

function idsOf({ ref, chunks }: Pick<BlobRef, 'ref' | 'chunks'>): string[] {
  return Array.from({ length: chunks }, (_, index) => `${ref}:${index}`);
}

function hashOf(text: string): string {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64url');
}

function isBlobRef(value: unknown): value is BlobRef {
  if (value === null || typeof value !== 'object') return false;
  const { ref, chunks, encoding } = value as Record<string, unknown>;
  return (
    typeof ref === 'string' &&
    typeof chunks === 'number' &&
    Number.isInteger(chunks) &&
    chunks > 0 &&
    chunks < 1000 &&
    (encoding === 'utf8' || encoding === 'utf16le')
  );
}

/**
 * BSON strings are UTF-8, which has no lone surrogates. A text with lone surrogates is stored as binary data of its UTF-16
 * units, any other text as a string. A text has exactly one stored form, so stored values can be compared and used as keys.
 */
export type StoredText = string | Binary;

export function toStored(text: string): StoredText {
  return text.isWellFormed() ? text : new Binary(Buffer.from(text, 'utf16le'));
}

/** Null for another type, which Troupe does not write. */
function fromStored(stored: unknown): string | null {
  if (typeof stored === 'string') return stored;
  return stored instanceof Binary ? bytesOf(stored).toString('utf16le') : null;
}

function bytesOf({ buffer, position }: Binary): Buffer {
  return Buffer.from(buffer.buffer, buffer.byteOffset, position);
}
