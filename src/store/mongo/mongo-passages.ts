import type { Collection, Filter } from 'mongodb';
import type { LogKey, PassageDocuments } from '../documents/documents.ts';
import type { Passage, TermCondition } from '../passages.ts';
import type { ConversationDoc } from './mongo-conversations.ts';
import { isDuplicateKey } from './mongo-error.ts';

export interface PassageDoc extends Omit<Passage, 'terms'> {
  /** Tenant, conversation and first seq. */
  _id: string;
  tenant: string;
  conversation: string;
  terms: string[];
}

/** Digits of a seq in an id, so that ids are ordered by it. */
const SEQ_DIGITS = 10;
/** How long a server may look for one page. */
const MOST_MS = 2_000;

/**
 * Passages in documents of their own. Their conversation is looked up again after they are stored, and removed before they
 * are: so none stays that is stored during the removal.
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
      // Another process has stored one that ends later.
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
        if (after !== undefined) parts.push(following(after));
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

/** Ids of conversations contain no '/', which '0' follows. */
function ofLog(log: LogKey): Filter<PassageDoc> {
  return { _id: { $gte: `${idOf(log)}/`, $lt: `${idOf(log)}0` } };
}

/** A term itself, or the beginning of one, which an index finds. */
export function termPattern({ term, whole }: TermCondition): string | { $regex: string } {
  return whole ? term : { $regex: `^${term.replace(/[\\^$.*+?()[\]{}|-]/g, String.raw`\$&`)}` };
}

/** What comes after a place in the order. */
function following(place: string): Filter<PassageDoc> {
  const [at = '', ...id] = place.split('/');
  const _id = id.join('/');
  // The first condition lets the scan start inside the index.
  return { at: { $lte: Number(at) }, $or: [{ at: { $lt: Number(at) } }, { _id: { $lt: _id } }] };
}
