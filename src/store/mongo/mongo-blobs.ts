import { hash, randomUUID } from 'node:crypto';
import type { Collection } from 'mongodb';
import { Binary } from 'mongodb';
import type { Clock } from '../../clock.ts';
import { type Background, isDuplicateKey } from './mongo-error.ts';

/**
 * Texts that are too large for the documents they belong to, in chunks.
 *  B1  A blob is written before the document that points to it, and is never changed; each is pointed to by at most
 *      one document, which it names.
 *  B2  Its first chunk is `pending` until somebody has seen that document. One that stays pending for a day and is not
 *      pointed to is removed, so a writer that was cut off leaves nothing behind for ever.
 *  B3  What is no longer pointed to is removed at once. Whoever read the pointer before must read it again.
 */
export interface Owner {
  in: 'events' | 'actors' | 'registers';
  id: StoredText;
}

export interface BlobRef {
  ref: string;
  chunks: number;
  encoding: 'utf8' | 'utf16le';
  /** Of the text, for a comparison without reading it. */
  hash: string;
}

/** How a document holds a text: in itself, or by name. */
export type Held = { data: StoredText; blob?: never } | { blob: BlobRef; data?: never };

export interface BlobDoc {
  _id: string;
  data: Binary;
  /** In the first chunk only. */
  of?: Owner;
  chunks?: number;
  pending?: Date;
  /** For texts of registers that expire. */
  expires?: Date;
}

/** Longer texts are kept apart. Never change it: how a text is compared depends on where it is. */
const MAX_INLINE_UNITS = 256 * 1024;
/** A document may have 16 MiB. */
const CHUNK_BYTES = 4 * 1024 * 1024;
const PENDING_MS = 24 * 3_600_000;
const COLLECT_EVERY_MS = 3_600_000;
const COLLECT_AT_ONCE = 200;

export interface Blobs {
  /** Writes the text apart if it is too large for its document. */
  hold(text: string, owner: Owner, expires?: Date): Promise<Held>;
  /** What `hold` gives for a text, without its name: how to find it. */
  filter(text: string): { data: StoredText } | { 'blob.hash': string };
  /** Null if it is not there, or not ours. */
  read(doc: { data?: unknown; blob?: unknown }): Promise<string | null>;
  /** The document that points to it is written. */
  keep(held: { blob?: BlobRef | undefined }): void;
  /** Nobody points to it, or nobody will. */
  drop(held: { blob?: unknown }): void;
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
  };
}

/** Writes, reads and removes the chunks of one text. */
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

  /** The name is random: if it is taken, then by an attempt of the driver that was thought lost. */
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
