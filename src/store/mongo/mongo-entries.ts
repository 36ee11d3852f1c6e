import type { Collection } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { EntryKey, KeyRange, Namespace } from '../driver.ts';
import type { EntryDocuments } from '../documents/documents.ts';
import { type BlobRef, type Blobs, insertDoc, removeDocs, type StoredText, toStored } from './mongo-blobs.ts';

/** A stored entry. `_id` is tenant/namespace/key. Tenant and namespace contain no slash. */
export interface EntryDoc {
  _id: StoredText;
  namespace: Namespace;
  at: number;
  /** When the server may remove it. */
  expires?: Date;
  data?: StoredText;
  blob?: BlobRef;
}

/** Namespaces that are needed only until their turn ends. */
const EXPIRING: ReadonlySet<Namespace> = new Set(['journal', 'effect']);
/** How much longer the server keeps a large text than the entry that points to it, ms. */
const BLOB_MARGIN_MS = 3_600_000;
/** Maximum reads of an entry whose large text is replaced meanwhile. */
const MAX_READS = 5;

interface EntryOptions {
  clock: Clock;
  keepMs: number;
}

export function createEntryDocuments(
  collection: Collection<EntryDoc>,
  blobs: Blobs,
  { clock, keepMs }: EntryOptions,
): EntryDocuments {
  /** Expiry counted from the present time, because `at` of an entry may be any time. */
  function expiryOf(namespace: Namespace, marginMs = 0): Date | undefined {
    return EXPIRING.has(namespace) ? new Date(clock.now() + keepMs + marginMs) : undefined;
  }

  const hold = (_id: StoredText, namespace: Namespace, text: string) =>
    blobs.hold(text, { in: 'registers', id: _id }, expiryOf(namespace, BLOB_MARGIN_MS));

  return {
    find: (key) => findText(collection, blobs, key),
    findMany: (keys) => findTexts(collection, blobs, keys),
    keysBetween: (range) => keysBetween(collection, range),

    async insert(key, data, at) {
      const { namespace } = key;
      const _id = idOf(key);
      const held = await hold(_id, namespace, data);
      const expires = expiryOf(namespace);
      const doc = { _id, namespace, at, ...held, ...(expires ? { expires } : {}) };
      return insertDoc(collection, blobs, doc);
    },

    async replace(key, from, to) {
      const _id = idOf(key);
      const held = await hold(_id, key.namespace, to);
      const unset = 'blob' in held ? { data: '' as const } : { blob: '' as const };
      const before = await collection.findOneAndUpdate(
        { _id, ...blobs.filter(from) },
        { $set: held, $unset: unset },
        { returnDocument: 'before', projection: { blob: 1 } },
      );
      if (before) blobs.keep(held);
      blobs.drop(before ?? held);
      return before !== null;
    },

    async removeBefore(namespace, before, limit) {
      const old = await collection
        .find({ namespace, at: { $lt: before } }, { projection: { blob: 1 } })
        .limit(limit)
        .toArray();
      if (old.length === 0) return 0;
      const { deletedCount } = await collection.deleteMany({ _id: { $in: old.map(({ _id }) => _id) } });
      for (const doc of old) blobs.drop(doc);
      return deletedCount;
    },

    async remove(keys) {
      await removeDocs(collection, blobs, { _id: { $in: keys.map(idOf) } });
    },
  };
}

async function findText(
  collection: Collection<EntryDoc>,
  blobs: Blobs,
  key: EntryKey,
): Promise<string | null> {
  for (let round = 1; ; round += 1) {
    const doc = await collection.findOne({ _id: idOf(key) }, { projection: { data: 1, blob: 1 } });
    if (!doc) return null;
    const text = await blobs.read(doc);
    if (text !== null) return text;
    if (round >= MAX_READS) throw corrupt(key);
  }
}

/** The texts of documents. An entry that is removed meanwhile counts as missing. */
async function findTexts(
  collection: Collection<EntryDoc>,
  blobs: Blobs,
  keys: readonly EntryKey[],
): Promise<(string | null)[]> {
  const docs = await collection
    .find({ _id: { $in: keys.map(idOf) } }, { projection: { data: 1, blob: 1 } })
    .toArray();
  const texts = new Map<string, string | null>();
  await Promise.all(docs.map(async (doc) => texts.set(nameOf(doc._id), await blobs.read(doc))));
  return keys.map((key) => texts.get(nameOf(idOf(key))) ?? null);
}

async function keysBetween(
  collection: Collection<EntryDoc>,
  { tenant, namespace, after, before, limit }: KeyRange,
): Promise<string[]> {
  const idAt = (key: string) => idOf({ tenant, namespace, key });
  const docs = await collection
    .find({ _id: { $gt: idAt(after), $lt: idAt(before) } }, { projection: { _id: 1 } })
    .sort({ _id: 1 })
    .limit(limit)
    .toArray();
  return docs.map(({ _id }) => String(_id).slice(`${tenant}/${namespace}/`.length));
}

function nameOf(id: StoredText): string {
  return typeof id === 'string' ? id : id.toString('base64');
}

function idOf({ tenant, namespace, key }: EntryKey): StoredText {
  return toStored(`${tenant}/${namespace}/${key}`);
}

function corrupt({ tenant, namespace, key }: EntryKey): TroupeError {
  const message = `${namespace} ${key} cannot be read: its text is missing or has another type`;
  return new TroupeError('store_corrupt', message, { tenant, namespace, key });
}
