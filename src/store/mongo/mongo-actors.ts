import type { Collection, Filter, UpdateFilter } from 'mongodb';
import { TroupeError } from '../../base/errors.ts';
import type { ActorKey, ActorRow } from '../driver.ts';
import type { ActorCondition, ActorDocuments, DocumentChange, LogKey } from '../documents/documents.ts';
import type { ActorDoc } from './actor-doc.ts';
import { columnsOf, damageOf, docOf, idOf, keyFromId, updateOf } from './actor-doc.ts';
import { type Blobs, type Held, insertDoc, removeDocs } from './mongo-blobs.ts';

/** Maximum ids of one query. */
const MANY = 500;
/** Maximum reads of a record whose large text is replaced meanwhile. */
const MAX_READS = 5;
/** Error code of an update that does not fit the type of a field. */
const TYPE_MISMATCH = 14;

export function createActorDocuments(collection: Collection<ActorDoc>, blobs: Blobs): ActorDocuments {
  return {
    ...createActorReads(collection, blobs),
    ...createActorWrites(collection, blobs),
  };
}

type ActorReads = Pick<ActorDocuments, 'find' | 'findMany' | 'list' | 'unfinished'>;

function createActorReads(collection: Collection<ActorDoc>, blobs: Blobs): ActorReads {
  const find = (key: ActorKey) => findActor(collection, blobs, key);

  /** A damaged record must not hide the others: its `data` becomes the reason, which cannot be decoded. */
  async function readable(key: ActorKey, doc: ActorDoc): Promise<ActorRow | null> {
    const damage = damageOf(doc);
    if (damage !== null) return { ...columnsOf(key, doc), data: damage };
    const data = await blobs.read(doc);
    if (data !== null) return { ...columnsOf(key, doc), data };
    try {
      return await find(key);
    } catch (error) {
      if (!(error instanceof TroupeError) || error.code !== 'actor_corrupt') throw error;
      return { ...columnsOf(key, doc), data: String(error.data['reason']) };
    }
  }

  return {
    find,

    async findMany(keys) {
      const rows: Omit<ActorRow, 'data'>[] = [];
      for (let from = 0; from < keys.length; from += MANY) {
        const some = keys.slice(from, from + MANY);
        const docs = await collection
          .find({ _id: { $in: some.map(idOf) } }, { projection: { data: 0, blob: 0 } })
          .toArray();
        for (const doc of docs) {
          const key = keyFromId(doc._id);
          if (key) rows.push(columnsOf(key, doc));
        }
      }
      return rows;
    },

    async list(log) {
      const docs = await collection
        .find({ _id: rangeOf(log) })
        .sort({ _id: 1 })
        .toArray();
      const rows: ActorRow[] = [];
      for (const doc of docs) {
        const key = keyFromId(doc._id);
        if (!key) continue;
        const row = await readable(key, doc);
        if (row) rows.push(row);
      }
      return rows;
    },

    async unfinished({ now, clock, limit }) {
      const docs = await collection
        .find(
          {
            $or: [{ turn: { $exists: true } }, { outbox: true }, { wakeAt: { $lte: clock } }],
            parked: { $exists: false },
            until: { $lt: now },
          },
          { projection: { _id: 1 } },
        )
        .limit(limit)
        .toArray();
      return docs.flatMap(({ _id }) => keyFromId(_id) ?? []);
    },
  };
}

type ActorWrites = Pick<ActorDocuments, 'insert' | 'update' | 'remove'>;

function createActorWrites(collection: Collection<ActorDoc>, blobs: Blobs): ActorWrites {
  /**
   * Requests the document as it was before the change, and computes the result: the new data is not sent back, and a
   * large text that is no longer needed can be removed.
   */
  async function update(
    key: ActorKey,
    condition: ActorCondition,
    change: DocumentChange,
  ): Promise<ActorRow | null> {
    const held =
      change.data === undefined ? null : await blobs.hold(change.data, { in: 'actors', id: idOf(key) });
    const before = await changeIf(key, condition, change, held);
    if (held && before) blobs.keep(held);
    if (held) blobs.drop(before ?? held);
    if (!before) return null;
    const damage = damageOf({ ...before, ...updateOf(change, held).$set });
    if (damage !== null) throw corrupt(key, damage);
    const data = change.data ?? (await blobs.read(before));
    if (data === null) throw await lostText(key);
    return { ...changed(columnsOf(key, before), change), data };
  }

  /**
   * The text was replaced after our change, perhaps under a newer fence. The new text is not the result of our change, so
   * the caller must read again.
   */
  async function lostText(key: ActorKey): Promise<TroupeError> {
    await findActor(collection, blobs, key);
    const message = `the state of ${key.agent} in conversation ${key.conversation} was changed meanwhile; try again`;
    return new TroupeError('store_unavailable', message, { ...key });
  }

  async function changeIf(
    key: ActorKey,
    condition: ActorCondition,
    change: DocumentChange,
    held: Held | null,
  ): Promise<ActorDoc | null> {
    const filter = filterOf(key, condition);
    const update: UpdateFilter<ActorDoc> = updateOf(change, held);
    const projection = held ? { data: 0 } : {};
    if (Object.keys(update).length === 0) return collection.findOne(filter, { projection });
    try {
      return await collection.findOneAndUpdate(filter, update, { returnDocument: 'before', projection });
    } catch (error) {
      if ((error as { code?: unknown }).code === TYPE_MISMATCH)
        throw corrupt(key, 'its fence is not a number', error);
      throw error;
    }
  }

  return {
    update,

    async insert(row) {
      const held = await blobs.hold(row.data, { in: 'actors', id: idOf(row) });
      return insertDoc(collection, blobs, docOf(row, held));
    },

    remove: (log) => removeDocs(collection, blobs, { _id: rangeOf(log) }),
  };
}

async function findActor(
  collection: Collection<ActorDoc>,
  blobs: Blobs,
  key: ActorKey,
): Promise<ActorRow | null> {
  const _id = idOf(key);
  for (let round = 1; ; round += 1) {
    const doc = await collection.findOne({ _id });
    if (!doc) return null;
    const damage = damageOf(doc);
    if (damage !== null) throw corrupt(key, damage);
    const data = await blobs.read(doc);
    if (data !== null) return { ...columnsOf(key, doc), data };
    // A missing large text means that the record points to a new one by now (B3).
    if (round >= MAX_READS) throw corrupt(key, 'its data is missing');
  }
}

function rangeOf({ tenant, conversation }: LogKey) {
  // '0' is the character after '/'.
  return { $gte: `${tenant}/${conversation}/`, $lt: `${tenant}/${conversation}0` };
}

function filterOf(
  key: ActorKey,
  { fence, turn, notAborted, freeAt, parked, outbox, processed }: ActorCondition,
): Filter<ActorDoc> {
  const filter: Filter<ActorDoc> = { _id: idOf(key) };
  if (fence !== undefined) filter.fence = fence;
  // Null also matches an absent field.
  if (turn !== undefined) Object.assign(filter, { turn });
  if (freeAt !== undefined) filter.until = { $lt: freeAt };
  if (processed !== undefined) filter.processed = processed;
  if (parked !== undefined) filter.parked = parked ?? { $exists: false };
  if (outbox === false) filter.outbox = { $exists: false };
  if (!notAborted || turn === null) return filter;
  if (turn !== undefined) filter.abort = { $ne: turn };
  else
    filter['$expr'] = {
      $or: [{ $eq: [{ $ifNull: ['$turn', null] }, null] }, { $ne: ['$abort', '$turn'] }],
    };
  return filter;
}

function changed(row: Omit<ActorRow, 'data'>, change: DocumentChange): Omit<ActorRow, 'data'> {
  const { raiseFence, ...fields } = change;
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { ...row, ...Object.fromEntries(defined), fence: row.fence + (raiseFence ? 1 : 0) };
}

function corrupt(key: ActorKey, reason: string, cause?: unknown): TroupeError {
  const { agent, conversation } = key;
  const message = `the state of ${agent} in conversation ${conversation} cannot be read: ${reason}`;
  return new TroupeError('actor_corrupt', message, { ...key, reason }, { cause });
}
