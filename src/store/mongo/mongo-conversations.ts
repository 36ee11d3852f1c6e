import type { Collection } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import type { LogKey } from '../documents/documents.ts';
import type { ConversationPlace, ConversationsQuery } from '../driver.ts';
import type { NewStanding } from '../standings.ts';
import { type Background, isDuplicateKey } from './mongo-error.ts';

/**
 * One small document per conversation, for the order and the pages of the list. Derived from the events; the listed values
 * are read from the events themselves.
 *  C1  It is written together with the first event, and shortly after every other one. If a crash loses a write, the next
 *      event makes it again, or for the first event its repetition.
 *  C2  `head` and `at` belong to the same event, and only a later event replaces them.
 */
export interface ConversationDoc {
  _id: string;
  tenant: string;
  head: number;
  at: number;
  /** Set while the standing is older than the head; absent otherwise. */
  unread?: true;
  standing?: StandingDoc;
}

/** Stored form of a standing. Its text is JSON, which has no lone surrogates, so it needs no `StoredText`. */
export type StandingDoc = Omit<NewStanding, 'agents' | 'terms'> & { agents: string[]; terms?: string[] };

interface Newest {
  log: LogKey;
  head: number;
  at: number;
}

/** How long an update waits for others that join its batch. */
const DELAY_MS = 250;
const MAX_WAITING = 1_000;

export interface Conversations {
  record(newest: Newest): void;
  recordAtOnce(newest: Newest): Promise<void>;
  flush(): Promise<void>;
  /** Positions in the list, newest first. They may be outdated, so the caller reads the events. Filtered by the index alone. */
  list(query: ConversationsQuery): Promise<ConversationPlace[]>;
  /** Removes the document of a conversation that has no events. */
  remove(log: LogKey): Promise<void>;
  close(): Promise<void>;
}

export function createConversations(
  collection: Collection<ConversationDoc>,
  {
    clock,
    background,
    removed,
  }: { clock: Clock; background: Background; removed: (log: LogKey) => Promise<void> },
): Conversations {
  let waiting = new Map<string, Newest>();
  let isScheduled = false;
  const closing = new AbortController();

  function record(newest: Newest): void {
    const id = idOf(newest.log);
    if ((waiting.get(id)?.head ?? 0) < newest.head) waiting.set(id, newest);
    if (isScheduled) return;
    isScheduled = true;
    background.run('recording the newest events of conversations', async () => {
      if (waiting.size < MAX_WAITING) await clock.sleep(DELAY_MS, closing.signal);
      isScheduled = false;
      await flush();
    });
  }

  async function flush(): Promise<void> {
    if (waiting.size === 0) return;
    const batch = [...waiting.values()];
    waiting = new Map();
    try {
      await writeNewest(collection, batch);
    } catch (error) {
      // A later flush retries, which C2 makes harmless.
      for (const newest of batch) if (!waiting.has(idOf(newest.log))) waiting.set(idOf(newest.log), newest);
      throw error;
    }
  }

  return {
    record,
    recordAtOnce: (newest) => writeNewest(collection, [newest]),
    flush,
    list: (query) => listNewest(collection, query),
    async remove(log) {
      waiting.delete(idOf(log));
      await collection.deleteOne({ _id: idOf(log) });
      await removed(log);
    },
    async close() {
      closing.abort();
      await flush();
    },
  };
}

async function writeNewest(collection: Collection<ConversationDoc>, batch: readonly Newest[]): Promise<void> {
  const updates = batch.map(({ log, head, at }) => ({
    updateOne: {
      filter: { _id: idOf(log), head: { $lt: head } },
      update: { $set: { head, at, unread: true as const }, $setOnInsert: { tenant: log.tenant } },
      upsert: true,
    },
  }));
  try {
    await collection.bulkWrite(updates, { ordered: false });
  } catch (error) {
    // A taken key means that the document has a later head, so it did not match and was not updated.
    if (!isDuplicateKey(error)) throw error;
  }
}

async function listNewest(
  collection: Collection<ConversationDoc>,
  { tenant, limit, before, ranges }: ConversationsQuery,
): Promise<ConversationPlace[]> {
  if (ranges?.length === 0) return [];
  const own = (id: string) => `${tenant}/${id}`;
  const isBehind = before && {
    // Lets the scan start inside the index. Without it the scan would pass over all newer entries.
    at: { $lte: before.at },
    $or: [{ at: { $lt: before.at } }, { _id: { $lt: own(before.id) } }],
  };
  const isIn = ranges && {
    $or: ranges.map(({ from, to }) => ({ _id: { $gte: own(from), $lt: own(to) } })),
  };
  const docs = await collection
    .find(
      { $and: [{ tenant }, ...(isBehind ? [isBehind] : []), ...(isIn ? [isIn] : [])] },
      { projection: { _id: 1, at: 1 } },
    )
    .sort({ at: -1, _id: -1 })
    .limit(limit)
    .toArray();
  return docs.map(({ _id, at }) => ({ id: String(_id).slice(tenant.length + 1), at }));
}

function idOf({ tenant, conversation }: LogKey): string {
  return `${tenant}/${conversation}`;
}
