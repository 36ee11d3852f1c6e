import type { Collection } from 'mongodb';
import { MongoBulkWriteError, MongoServerError } from 'mongodb';
import { TroupeError } from '../../base/errors.ts';
import {
  byPlace,
  type ConversationPage,
  type ConversationRow,
  type ConversationsQuery,
  type EventRow,
} from '../driver.ts';
import type { EventDocuments, LogKey } from '../documents/documents.ts';
import { type AddressedEvent, eachAddressee } from '../documents/find-due.ts';
import type { BlobRef, Blobs, StoredText } from './mongo-blobs.ts';
import type { Conversations } from './mongo-conversations.ts';
import { isDuplicateKey } from './mongo-error.ts';

/** A stored event. `_id` is tenant/conversation/id, `log` is tenant/conversation. Only the id may contain slashes. */
export interface EventDoc {
  _id: string;
  log: string;
  seq: number;
  at: number;
  kind: string;
  hash: string;
  /** Absent if the end of the log was not known when it was written. */
  chain?: string;
  tokens: number;
  turn?: string;
  /** `to` and `addressedAt` are absent if the event addresses no agent, so that their sparse index omits it. */
  to?: readonly string[];
  addressedAt?: number;
  data?: StoredText;
  blob?: BlobRef;
}

/** Events of one answer of the server, which bounds its duration. */
const BATCH = 1_000;
/** Events of one answer to a read with `maxBytes`, which bounds how many are sent and not used. */
const SHORT_BATCH = 100;
const ADDRESSED_BATCH = 5_000;
/** Maximum events of one update, because updating a whole long log could exceed the timeout of a request. */
const UNADDRESSED = 100;
const HEADS_AT_ONCE = 16;

export function createEventDocuments(
  collection: Collection<EventDoc>,
  blobs: Blobs,
  conversations: Conversations,
): EventDocuments {
  return {
    ...createEventInsert(collection, blobs, conversations),
    ...createEventReads(collection, blobs, conversations),
    ...createAddresseeReads(collection),
    ...createEventChanges(collection, blobs, conversations),
    conversations: (query) => listConversations(collection, conversations, query),
  };
}

function createEventInsert(
  collection: Collection<EventDoc>,
  blobs: Blobs,
  conversations: Conversations,
): Pick<EventDocuments, 'insert'> {
  async function insert(rows: readonly EventRow[]): Promise<number> {
    const docs: EventDoc[] = [];
    for (const row of rows) {
      const doc = docOf(row);
      docs.push({ ...doc, ...(await blobs.hold(row.data, { in: 'events', id: doc._id })) });
    }
    const [inserted] = await Promise.all([insertDocs(docs), recordFirst(rows[0])]);
    for (const [index, doc] of docs.entries()) {
      if (index < inserted) blobs.keep(doc);
      else blobs.drop(doc);
    }
    const last = rows[inserted - 1];
    if (last && last.seq > 1) conversations.record({ log: last, head: last.seq, at: last.at });
    return inserted;
  }

  async function insertDocs(docs: EventDoc[]): Promise<number> {
    try {
      if (docs.length === 1) await collection.insertOne(docs[0]!);
      else await collection.insertMany(docs, { ordered: true });
      return docs.length;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      if (!(error instanceof MongoBulkWriteError)) return 0;
      // The events before the refused one are inserted, but perhaps not durably.
      const doubt = error.result.getWriteConcernError();
      if (doubt) throw new MongoServerError({ message: doubt.errmsg ?? 'write concern error' });
      return error.insertedCount;
    }
  }

  /** May run beside the insert, because a conversation without events is not listed. */
  async function recordFirst(row: EventRow | undefined): Promise<void> {
    if (row?.seq === 1) await conversations.recordAtOnce({ log: row, head: 1, at: row.at });
  }

  return { insert };
}

function createEventReads(
  collection: Collection<EventDoc>,
  blobs: Blobs,
  conversations: Conversations,
): Pick<EventDocuments, 'find' | 'range' | 'keys' | 'last'> {
  async function find(log: LogKey, id: string): Promise<EventRow | null> {
    const doc = await collection.findOne({ _id: `${logOf(log)}/${id}` });
    // If this is the repetition of a first event, its conversation may be missing from the list (C1).
    if (doc?.seq === 1) conversations.record({ log, head: 1, at: doc.at });
    return doc && rowOf(log, doc);
  }

  async function range(
    log: LogKey,
    { after, upTo, limit, maxBytes = Number.POSITIVE_INFINITY }: Parameters<EventDocuments['range']>[1],
  ): Promise<EventRow[]> {
    if (limit <= 0 || upTo <= after) return [];
    const batch = maxBytes < Number.POSITIVE_INFINITY ? SHORT_BATCH : BATCH;
    const cursor = collection
      .find({ log: logOf(log), seq: { $gt: after, $lte: upTo } })
      .sort({ seq: 1 })
      .batchSize(Math.min(limit, batch));
    if (limit < 2 ** 31) cursor.limit(limit);
    const rows: EventRow[] = [];
    let bytes = 0;
    // Leaving the loop closes the cursor.
    for await (const doc of cursor) {
      const row = await rowOf(log, doc);
      rows.push(row);
      if (maxBytes < Number.POSITIVE_INFINITY) bytes += Buffer.byteLength(row.data);
      if (bytes >= maxBytes) break;
    }
    return rows;
  }

  async function rowOf(log: LogKey, doc: EventDoc): Promise<EventRow> {
    return {
      tenant: log.tenant,
      conversation: log.conversation,
      id: idOf(log, doc._id),
      seq: doc.seq,
      at: numberOr(doc.at, Number.NaN),
      kind: textOr(doc.kind, ''),
      to: addresseesOf(doc),
      hash: textOr(doc.hash, ''),
      chain: chainOf(doc),
      tokens: numberOr(doc.tokens, Number.NaN),
      turn: doc.turn === undefined || doc.turn === null ? null : textOr(doc.turn, ''),
      // This text is not JSON, so decoding the row reports it as corrupt.
      data: (await blobs.read(doc)) ?? 'the text is missing or has another type',
    };
  }

  return {
    find,
    range,
    async keys(log, { after, upTo }) {
      const docs = collection.find(
        { log: logOf(log), seq: { $gt: after, $lte: upTo } },
        { projection: { seq: 1, chain: 1 } },
      );
      return (await docs.toArray()).map((doc) => ({
        seq: doc.seq,
        id: idOf(log, doc._id),
        chain: chainOf(doc),
      }));
    },
    async last(log, known = 0) {
      const newest =
        (known > 0 ? await newestEvent(collection, log, known) : null) ??
        (await newestEvent(collection, log));
      const seq = newest?.head ?? 0;
      if (Number.isSafeInteger(seq)) return { seq, chain: newest?.chain ?? null };
      const message = `conversation ${log.conversation} has an event with seq ${seq}, which is not a whole number; remove it`;
      throw new TroupeError('store_corrupt', message, { ...log, seq });
    },
  };
}

function createAddresseeReads(
  collection: Collection<EventDoc>,
): Pick<EventDocuments, 'addressed' | 'visitAddressees'> {
  return {
    /** Uses no index by agent, because callers ask for the unread end of the log, which is short. */
    async addressed({ agent, ...log }, { after, upTo }) {
      const cursor = collection
        .find({ log: logOf(log), seq: { $gt: after, $lte: upTo } }, { projection: { _id: 0, seq: 1, to: 1 } })
        .sort({ seq: 1 })
        .batchSize(ADDRESSED_BATCH);
      const seqs: number[] = [];
      for await (const doc of cursor) if (addresseesOf(doc).includes(agent)) seqs.push(doc.seq);
      return seqs;
    },

    /** Grouped here and not by the server, so that no single answer takes long. */
    async visitAddressees(since, visit) {
      const cursor = collection
        .find({ addressedAt: { $gte: since } }, { projection: { _id: 0, log: 1, seq: 1, at: 1, to: 1 } })
        .sort({ addressedAt: 1 })
        .batchSize(ADDRESSED_BATCH);
      let page: AddressedEvent[] = [];
      for await (const doc of cursor) {
        const [tenant, conversation, ...rest] = String(doc.log).split('/');
        if (tenant && conversation && rest.length === 0)
          page.push({ tenant, conversation, seq: doc.seq, at: doc.at, to: addresseesOf(doc) });
        if (page.length < ADDRESSED_BATCH) continue;
        await visit(eachAddressee(page));
        page = [];
      }
      await visit(eachAddressee(page));
    },
  };
}

function createEventChanges(
  collection: Collection<EventDoc>,
  blobs: Blobs,
  conversations: Conversations,
): Pick<EventDocuments, 'unchain' | 'unaddress' | 'removeNewest' | 'replaceData'> {
  return {
    async unchain(log, id) {
      await collection.updateOne({ _id: `${logOf(log)}/${id}` }, { $unset: { chain: '' } });
    },

    async replaceData(log, rows) {
      for (const { id, data } of rows) {
        const _id = `${logOf(log)}/${id}`;
        const held = await blobs.hold(data, { in: 'events', id: _id });
        const change = held.blob
          ? { $set: { blob: held.blob }, $unset: { data: '' as const } }
          : { $set: { data: held.data }, $unset: { blob: '' as const } };
        const before = await collection.findOneAndUpdate({ _id }, change, { projection: { blob: 1 } });
        if (before) blobs.keep(held);
        else await blobs.remove(held);
        if (before) await blobs.remove(before);
      }
    },

    async unaddress(log) {
      const addressed = { log: logOf(log), addressedAt: { $exists: true } };
      for (let after = 0; ;) {
        const lot = collection.find({ ...addressed, seq: { $gt: after } }, { projection: { seq: 1 } });
        const docs = await lot.sort({ seq: 1 }).limit(UNADDRESSED).toArray();
        const upTo = docs.at(-1)?.seq;
        if (upTo === undefined) return;
        const range = { ...addressed, seq: { $gt: after, $lte: upTo } };
        await collection.updateMany(range, { $unset: { to: '', addressedAt: '' } });
        after = upTo;
      }
    },

    async removeNewest(log, { after, limit }) {
      const docs = await collection
        .find({ log: logOf(log), ...(after > 0 ? { seq: { $gt: after } } : {}) }, { projection: { blob: 1 } })
        .sort({ seq: -1 })
        .limit(limit)
        .toArray();
      if (docs.length > 0) await collection.deleteMany({ _id: { $in: docs.map(({ _id }) => _id) } });
      for (const doc of docs) blobs.drop(doc);
      if (after === 0 && docs.length < limit) await conversations.remove(log);
      return docs.length;
    },
  };
}

async function listConversations(
  collection: Collection<EventDoc>,
  conversations: Conversations,
  query: ConversationsQuery,
): Promise<ConversationPage> {
  const { tenant, limit } = query;
  if (limit <= 0) return { rows: [], next: null, looked: 0 };
  await conversations.flush();
  const places = await conversations.list(query);
  const rows: ConversationRow[] = [];
  for (let from = 0; from < places.length; from += HEADS_AT_ONCE) {
    const some = places.slice(from, from + HEADS_AT_ONCE);
    const read = await Promise.all(
      some.map(({ id }) => newestEvent(collection, { tenant, conversation: id })),
    );
    for (const [index, found] of read.entries()) {
      if (found) rows.push({ id: some[index]!.id, head: found.head, at: found.at });
    }
  }
  // The recorded position may be outdated. So a conversation may be listed twice, but is never left out.
  const next = places.length < limit ? null : places.at(-1)!;
  return { rows: rows.sort(byPlace), next, looked: places.length };
}

async function newestEvent(
  collection: Collection<EventDoc>,
  log: LogKey,
  from = 1,
): Promise<{ head: number; at: number; chain: string | null } | null> {
  const doc = await collection.findOne(
    // `$gte` with a number also filters out damaged seqs of another type.
    { log: logOf(log), seq: { $gte: from } },
    { projection: { _id: 0, seq: 1, at: 1, chain: 1 }, sort: { seq: -1 } },
  );
  return doc && { head: doc.seq, at: numberOr(doc.at, 0), chain: chainOf(doc) };
}

function docOf(row: EventRow): EventDoc {
  const { id, seq, at, kind, to, hash, chain, tokens, turn } = row;
  const log = logOf(row);
  const doc: EventDoc = { _id: `${log}/${id}`, log, seq, at, kind, hash, tokens };
  if (chain !== null) doc.chain = chain;
  if (turn !== null) doc.turn = turn;
  if (to.length > 0) Object.assign(doc, { to, addressedAt: at });
  return doc;
}

function logOf({ tenant, conversation }: LogKey): string {
  return `${tenant}/${conversation}`;
}

function idOf(log: LogKey, _id: unknown): string {
  const prefix = `${logOf(log)}/`;
  const name = textOr(_id, '');
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

function chainOf({ chain }: EventDoc): string | null {
  return chain === undefined ? null : textOr(chain, '');
}

/** A damaged agent id becomes '', so that decoding the row reports it as corrupt. */
function addresseesOf({ to }: EventDoc): string[] {
  if (to === undefined) return [];
  return Array.isArray(to) ? to.map((each: unknown) => textOr(each, '')) : [''];
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
