import type { Collection, Filter, UpdateFilter } from 'mongodb';
import { TroupeError } from '../../base/errors.ts';
import type { ActorKey, ActorRow } from '../driver.ts';
import type { ActorCondition, ActorDocuments, DocumentChange, LogKey } from '../documents/documents.ts';
import {
  type Blobs,
  type Held,
  insertDoc,
  removeDocs,
  type BlobRef,
  type StoredText,
} from './mongo-blobs.ts';

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

  /** A damaged record must not hide the others: its `data` becomes the reason, and decoding that reports the damage. */
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
   * Asks the server for the document before the change and computes the result from it. So the new data is not sent back, and
   * the large text that the change replaced is known and can be removed.
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
   * Another write replaced the text after this change, perhaps under a newer fence. The new text is not the result of this
   * change, so the caller must read again.
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
    // A missing large text means that the record points to a newer one (B3).
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

/** `_id` is tenant/conversation/agent. Null and false are stored as absent fields, because sparse indexes omit those. */
export interface ActorDoc {
  _id: string;
  fence: number;
  owner: string;
  until: number;
  processed: number;
  turn?: string;
  abort?: string;
  parked?: string;
  outbox?: true;
  wakeAt?: number;
  data?: StoredText;
  blob?: BlobRef;
}

const NULLABLE = ['turn', 'abort', 'parked'] as const;
const ABSENT_IF_NULL = [...NULLABLE, 'wakeAt'] as const;
const PLAIN = ['owner', 'until', 'processed'] as const;

function idOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}

/** Null for an id that Troupe did not write. */
function keyFromId(id: unknown): ActorKey | null {
  const [tenant, conversation, agent, ...rest] = typeof id === 'string' ? id.split('/') : [];
  return tenant && conversation && agent && rest.length === 0 ? { tenant, conversation, agent } : null;
}

function docOf(row: ActorRow, held: Held): ActorDoc {
  const { fence, owner, until, processed, turn, abort, parked, outbox, wakeAt } = row;
  const doc: ActorDoc = { _id: idOf(row), fence, owner, until, processed, ...held };
  if (turn !== null) doc.turn = turn;
  if (abort !== null) doc.abort = abort;
  if (parked !== null) doc.parked = parked;
  if (outbox) doc.outbox = true;
  if (wakeAt !== null) doc.wakeAt = wakeAt;
  return doc;
}

/** Empty without changes; an undefined key leaves its field unchanged. */
function updateOf(change: DocumentChange, held: Held | null): UpdateFilter<ActorDoc> {
  const set: Record<string, unknown> = { ...held };
  const unset: Record<string, ''> = {};
  if (held) unset['blob' in held ? 'data' : 'blob'] = '';
  for (const name of PLAIN) if (change[name] !== undefined) set[name] = change[name];
  for (const name of ABSENT_IF_NULL) {
    if (change[name] === null) unset[name] = '';
    else if (change[name] !== undefined) set[name] = change[name];
  }
  if (change.outbox === true) set['outbox'] = true;
  if (change.outbox === false) unset['outbox'] = '';
  return {
    ...(Object.keys(set).length > 0 ? { $set: set } : {}),
    ...(Object.keys(unset).length > 0 ? { $unset: unset } : {}),
    ...(change.raiseFence ? { $inc: { fence: 1 } } : {}),
  } as UpdateFilter<ActorDoc>;
}

/** What is wrong with a document, or null. Its data is not checked here but when it is decoded. */
function damageOf(doc: ActorDoc): string | null {
  const fields = doc as unknown as Record<string, unknown>;
  for (const name of ['fence', 'until', 'processed']) {
    if (typeof fields[name] !== 'number') return `its ${name} is not a number`;
  }
  if (typeof fields['owner'] !== 'string') return 'its owner is not a string';
  for (const name of NULLABLE) {
    const value = fields[name];
    if (value !== undefined && value !== null && typeof value !== 'string')
      return `its ${name} is not a string`;
  }
  const { outbox, wakeAt } = fields;
  if (wakeAt !== undefined && wakeAt !== null && typeof wakeAt !== 'number')
    return 'its wakeAt is not a number';
  return outbox === undefined || outbox === null || typeof outbox === 'boolean'
    ? null
    : 'its outbox is not a boolean';
}

/** All fields but the data. A damaged field gets a value that keeps the actor due, so that the damage is found. */
function columnsOf({ tenant, conversation, agent }: ActorKey, doc: ActorDoc): Omit<ActorRow, 'data'> {
  const fields = doc as unknown as Record<string, unknown>;
  const number = (name: string) => (typeof fields[name] === 'number' ? fields[name] : 0);
  const text = (name: string) => {
    const value = fields[name];
    return value === undefined || value === null ? null : typeof value === 'string' ? value : 'damaged';
  };
  return {
    tenant,
    conversation,
    agent,
    fence: number('fence'),
    owner: text('owner') ?? '',
    until: number('until'),
    processed: number('processed'),
    turn: text('turn'),
    abort: text('abort'),
    parked: text('parked'),
    outbox: fields['outbox'] === true,
    wakeAt: fields['wakeAt'] === undefined || fields['wakeAt'] === null ? null : number('wakeAt'),
  };
}
