import type { Collection, Filter } from 'mongodb';
import type { LogKey, StandingDocuments, PassageDocuments } from '../documents/documents.ts';
import {
  emptyRanks,
  type ListedStanding,
  STANDING_ORDERS,
  type StandingFilter,
  type StandingPlace,
  standingPage,
  type NewStanding,
  type StandingsQuery,
} from '../standings.ts';
import type { ConversationDoc, Conversations, StandingDoc } from './mongo-conversations.ts';
import type { Passage, TermCondition } from '../passages.ts';
import { isDuplicateKey } from './mongo-error.ts';

/**
 * Stores standings in the documents of conversations.
 *  - Every write of a later head sets `unread`, and the standing of that head removes it, so `behind` reads an index.
 *  - A standing may be stored before the head that it takes into account, if another process records that head. The
 *    conversation is then `unread`, and its standing is stored once more.
 */
export function createStandingDocuments(
  collection: Collection<ConversationDoc>,
  conversations: Pick<Conversations, 'flush'>,
): StandingDocuments {
  async function save(log: LogKey, { agents, terms, ...row }: NewStanding): Promise<void> {
    const standing: StandingDoc = {
      ...row,
      owner: row.owner.toWellFormed(),
      words: row.words.toWellFormed(),
      agents: [...agents],
      terms: [...terms],
    };
    const _id = `${log.tenant}/${log.conversation}`;
    const isOlder = { $or: [{ 'standing.seq': { $lte: row.seq } }, { standing: { $exists: false } }] };
    await conversations.flush();
    const isHead = await collection.updateOne(
      { _id, head: { $lte: row.seq }, ...isOlder },
      { $set: { standing }, $unset: { unread: '' } },
    );
    if (isHead.matchedCount === 0) await collection.updateOne({ _id, ...isOlder }, { $set: { standing } });
  }

  return {
    save,
    async seqOf({ tenant, conversation }) {
      const doc = await collection.findOne(
        { _id: `${tenant}/${conversation}` },
        { projection: { 'standing.seq': 1 } },
      );
      return doc?.standing?.seq ?? 0;
    },
    async remove({ tenant, conversation }) {
      await conversations.flush();
      const change = { $unset: { standing: '' as const }, $set: { unread: true as const } };
      await collection.updateOne({ _id: `${tenant}/${conversation}` }, change);
    },
    async list(query) {
      const { tenant, order, limit, after, ranges } = query;
      if (limit <= 0 || ranges?.length === 0) return { rows: [], next: null };
      await conversations.flush();
      const { keys, direction } = STANDING_ORDERS[order];
      const sign = direction === 'up' ? 1 : -1;
      const parts = filterOf(query);
      if (after) parts.push(following(query, after));
      const docs = await collection
        .find({ $and: parts }, { projection: { 'standing.terms': 0 } })
        .sort([...keys.map((key): [string, 1 | -1] => [`standing.${key}`, sign]), ['_id', sign]])
        .limit(limit + 1)
        .toArray();
      return standingPage(
        docs.map((doc) => rowOf(tenant, doc)),
        query,
      );
    },
    async count(filter) {
      const ranks = emptyRanks();
      if (filter.ranges?.length === 0) return { ranks, behind: 0 };
      await conversations.flush();
      const behind = collection.countDocuments({
        $and: [{ tenant: filter.tenant, unread: true }, ...inRanges(filter)],
      });
      const counted = collection.aggregate<{ _id: number; count: number }>([
        { $match: { $and: filterOf(filter) } },
        { $group: { _id: '$standing.rank', count: { $sum: 1 } } },
      ]);
      for await (const { _id: rank, count } of counted) ranks[rank] = count;
      return { ranks, behind: await behind };
    },
    async behind({ tenant, limit }) {
      await conversations.flush();
      const docs = await collection
        .find({ tenant, unread: true }, { projection: { _id: 1 } })
        .sort({ at: -1 })
        .limit(limit)
        .toArray();
      return docs.map(({ _id }) => _id.slice(tenant.length + 1));
    },
  };
}

type Part = Filter<ConversationDoc>;

function filterOf(filter: StandingFilter): Part[] {
  const { tenant, ranks, agent, owner, from, to, text, terms = [] } = filter;
  const [only, ...others] = ranks ?? [];
  const rank = !ranks ? { $gte: 0 } : others.length === 0 && only !== undefined ? only : { $in: [...ranks] };
  const parts: Part[] = [{ tenant, 'standing.rank': rank }];
  if (from !== undefined) parts.push({ 'standing.since': { $gte: from } });
  if (to !== undefined) parts.push({ 'standing.since': { $lt: to } });
  if (agent !== undefined) parts.push({ 'standing.agents': agent });
  if (owner !== undefined) parts.push({ 'standing.owner': owner.toWellFormed() });
  for (const term of terms) parts.push({ 'standing.terms': termPattern(term) });
  if (text !== undefined) parts.push({ 'standing.words': { $regex: literal(text) } });
  return [...parts, ...inRanges(filter)];
}

function inRanges({ tenant, ranges }: StandingFilter): Part[] {
  if (!ranges) return [];
  return [
    { $or: ranges.map(({ from, to }) => ({ _id: { $gte: `${tenant}/${from}`, $lt: `${tenant}/${to}` } })) },
  ];
}

function literal(text: string): string {
  return text.toWellFormed().replace(/[\\^$.*+?()[\]{}|#]/g, String.raw`\$&`);
}

/** The filter for standings after a position: a later first key, or the same first key and a later second key, and so on. */
function following({ tenant, order }: StandingsQuery, { keys: values, id }: StandingPlace): Part {
  const { keys, direction } = STANDING_ORDERS[order];
  const [later, notBefore] = direction === 'up' ? ['$gt', '$gte'] : ['$lt', '$lte'];
  const places: [string, number | string][] = [
    ...keys.map((key, index): [string, number] => [`standing.${key}`, values[index] ?? 0]),
    ['_id', `${tenant}/${id}`],
  ];
  const branches = places.map(([name, value], index) => ({
    ...Object.fromEntries(places.slice(0, index)),
    [name]: { [later]: value },
  }));
  const [name, value] = places[0]!;
  // The first condition lets the scan start inside the index.
  return { $and: [{ [name]: { [notBefore]: value } }, { $or: branches }] } as Part;
}

function rowOf(tenant: string, { _id, head, at, standing }: ConversationDoc): ListedStanding {
  return { ...standing!, id: _id.slice(tenant.length + 1), head: Math.max(head, standing!.seq), at };
}

export interface PassageDoc extends Omit<Passage, 'terms'> {
  /** tenant/conversation/first seq, with the digits of `SEQ_DIGITS`. */
  _id: string;
  tenant: string;
  conversation: string;
  terms: string[];
}

/** Seqs in ids are padded to this many digits, so that ids sort by seq. */
const SEQ_DIGITS = 10;
const MOST_MS = 2_000;

/**
 * Stores passages in documents of their own. After a passage is stored, its conversation is read again, and a removal deletes
 * the conversation before its passages. So a passage that is stored during a removal does not stay.
 */
export function createPassageDocuments(
  collection: Collection<PassageDoc>,
  conversations: Collection<ConversationDoc>,
): { documents: PassageDocuments; remove(log: LogKey): Promise<void> } {
  async function endOf(log: LogKey): Promise<number> {
    const doc = await conversations.findOne({ _id: idOf(log) }, { projection: { head: 1 } });
    return doc?.head ?? 0;
  }

  async function remove(log: LogKey): Promise<void> {
    await collection.deleteMany(ofLog(log));
  }

  async function save({ tenant, conversation }: LogKey, passages: readonly Passage[]): Promise<void> {
    const log = { tenant, conversation };
    if (passages.length === 0 || (await endOf(log)) === 0) return;
    const updates = passages.map(({ first, last, at, terms }) => {
      const _id = `${idOf(log)}/${String(first).padStart(SEQ_DIGITS, '0')}`;
      const passage = { ...log, first, last, at: Math.trunc(at), terms: [...terms] };
      return {
        updateOne: { filter: { _id, last: { $lte: last } }, update: { $set: passage }, upsert: true },
      };
    });
    try {
      await collection.bulkWrite(updates, { ordered: false });
    } catch (error) {
      // A taken key means that another process has stored a passage that ends later.
      if (!isDuplicateKey(error)) throw error;
    }
    if ((await endOf(log)) === 0) await remove(log);
  }

  return {
    remove,
    documents: {
      save,
      remove,
      async find({ tenant, terms, from, ranges, limit, after }) {
        if (limit <= 0 || ranges?.length === 0) return [];
        const parts: Filter<PassageDoc>[] = [{ tenant }];
        for (const term of terms) parts.push({ terms: termPattern(term) });
        if (from !== undefined) parts.push({ at: { $gte: from } });
        if (ranges)
          parts.push({
            $or: ranges.map((range) => ({
              conversation: { $gte: range.from, $lt: range.to },
            })),
          });
        if (after !== undefined) parts.push(passagesAfter(after));
        const docs = await collection
          .find({ $and: parts }, { projection: { terms: 0 }, maxTimeMS: MOST_MS })
          .sort({ at: -1, _id: -1 })
          .limit(limit)
          .toArray();
        return docs.map(({ _id, conversation: id, first, last, at }) => ({
          id,
          first,
          last,
          at,
          place: `${at}/${_id}`,
        }));
      },
    },
  };
}

const idOf = ({ tenant, conversation }: LogKey) => `${tenant}/${conversation}`;

/** A range of ids. Ids of conversations contain no '/', and '0' is the character after '/'. */
function ofLog(log: LogKey): Filter<PassageDoc> {
  return { _id: { $gte: `${idOf(log)}/`, $lt: `${idOf(log)}0` } };
}

/** Matches a whole term, or terms that begin with it. An index serves both. */
function termPattern({ term, whole }: TermCondition): string | { $regex: string } {
  return whole ? term : { $regex: `^${term.replace(/[\\^$.*+?()[\]{}|-]/g, String.raw`\$&`)}` };
}

function passagesAfter(place: string): Filter<PassageDoc> {
  const [at = '', ...id] = place.split('/');
  const _id = id.join('/');
  // The first condition lets the scan start inside the index.
  return { at: { $lte: Number(at) }, $or: [{ at: { $lt: Number(at) } }, { _id: { $lt: _id } }] };
}
