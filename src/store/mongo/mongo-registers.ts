import type { Collection } from 'mongodb';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import type { KeyRange } from '../conversation-keys.ts';
import type { EntryKey, Namespace } from '../driver.ts';
import type { RegisterDocuments } from '../documents/documents.ts';
import { type BlobRef, type Blobs, type StoredText, toStored } from './mongo-blobs.ts';
import { isDuplicateKey } from './mongo-error.ts';

/** `_id` is tenant/shelf/key; neither of the first two has a slash. */
export interface RegisterDoc {
  _id: StoredText;
  shelf: Namespace;
  at: number;
  /** When the server may remove it by itself. */
  expires?: Date;
  data?: StoredText;
  blob?: BlobRef;
}

/** What a turn needs until it is over, and nobody after it. */
const EXPIRING: ReadonlySet<Namespace> = new Set(['journal', 'effect']);
/** A text outlives the register that points to it. */
const BLOB_MARGIN_MS = 3_600_000;
/** Reads of a register whose large text was replaced in between. */
const MAX_READS = 5;

export interface RegisterOptions {
  clock: Clock;
  keepMs: number;
}

export function createRegisterDocuments(
  collection: Collection<RegisterDoc>,
  blobs: Blobs,
  { clock, keepMs }: RegisterOptions,
): RegisterDocuments {
  /** By our clock and not by the time of the record, which may be any: it is of what the record tells. */
  function expiryOf(shelf: Namespace, marginMs = 0): Date | undefined {
    return EXPIRING.has(shelf) ? new Date(clock.now() + keepMs + marginMs) : undefined;
  }

  const hold = (_id: StoredText, shelf: Namespace, text: string) =>
    blobs.hold(text, { in: 'registers', id: _id }, expiryOf(shelf, BLOB_MARGIN_MS));

  return {
    find: (key) => findText(collection, blobs, key),
    keysBetween: (range) => keysBetween(collection, range),

    async insert(key, data, at) {
      const { shelf } = key;
      const _id = idOf(key);
      const held = await hold(_id, shelf, data);
      const expires = expiryOf(shelf);
      try {
        await collection.insertOne({ _id, shelf, at, ...held, ...(expires ? { expires } : {}) });
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
        blobs.drop(held);
        return false;
      }
      blobs.keep(held);
      return true;
    },

    async replace(key, from, to) {
      const _id = idOf(key);
      const held = await hold(_id, key.shelf, to);
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

    async removeBefore(shelf, before, limit) {
      const old = await collection
        .find({ shelf, at: { $lt: before } }, { projection: { blob: 1 } })
        .limit(limit)
        .toArray();
      if (old.length === 0) return 0;
      const { deletedCount } = await collection.deleteMany({ _id: { $in: old.map(({ _id }) => _id) } });
      for (const doc of old) blobs.drop(doc);
      return deletedCount;
    },

    async remove(keys) {
      const _id = { $in: keys.map(idOf) };
      const large = await collection
        .find({ _id, blob: { $exists: true } }, { projection: { blob: 1 } })
        .toArray();
      await collection.deleteMany({ _id });
      for (const doc of large) blobs.drop(doc);
    },
  };
}

async function findText(
  collection: Collection<RegisterDoc>,
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

async function keysBetween(
  collection: Collection<RegisterDoc>,
  { tenant, shelf, after, before, limit }: KeyRange,
): Promise<string[]> {
  const idAt = (key: string) => idOf({ tenant, shelf, key });
  const docs = await collection
    .find({ _id: { $gt: idAt(after), $lt: idAt(before) } }, { projection: { _id: 1 } })
    .sort({ _id: 1 })
    .limit(limit)
    .toArray();
  return docs.map(({ _id }) => String(_id).slice(`${tenant}/${shelf}/`.length));
}

function idOf({ tenant, shelf, key }: EntryKey): StoredText {
  return toStored(`${tenant}/${shelf}/${key}`);
}

function corrupt({ tenant, shelf, key }: EntryKey): TroupeError {
  const message = `${shelf} ${key} cannot be read: its text is missing or has another type`;
  return new TroupeError('store_corrupt', message, { tenant, shelf, key });
}
