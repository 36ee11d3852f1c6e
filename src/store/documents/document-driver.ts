import { TroupeError } from '../../errors.ts';
import { newActorRow } from '../actor-row.ts';
import { deleteInOrder } from '../delete-conversation.ts';
import type { AcquireOutcome, ActorKey, EntryKey, StoreDriver } from '../driver.ts';
import { type AppendQueueOptions, type AppendStats, createAppendQueue } from './append-queue.ts';
import type { ActorCondition, ActorDocuments, Addressee, Documents, RegisterDocuments } from './documents.ts';

export interface DocumentDriver extends StoreDriver {
  /** Counted since the driver was made. */
  readonly stats: Readonly<AppendStats>;
}

/** Bounds a loop in which every round another process was faster. */
const MAX_ROUNDS = 20;
/** Removed at once by an expiry, or of a conversation: far from what a slow server has no time for in one operation. */
const STEP = 100;

/**
 * The store over single-document operations: every algorithm of the port that is more than one of them, for a database
 * and for the simulation alike. Owns the appends (see `append-queue.ts`) and the count of what is under way.
 *  G1  Every method here is safe against any other process doing the same in between, and against being cut off after
 *      any of its operations: what it leaves is a state that the next caller can go on from.
 *  G2  After `close` nothing is begun; what was begun before is finished first.
 */
export function createDocumentDriver(documents: Documents, options: AppendQueueOptions): DocumentDriver {
  const { events, actors, registers } = documents;
  const queue = createAppendQueue(events, options);
  documents.onLost?.(queue.forget);
  const work = createWorkTracker();
  const { begun } = work;
  return {
    stats: queue.stats,
    append: begun((rows) => queue.append(rows)),
    readEvents: begun(async ({ tenant, conversation, upTo = Number.MAX_SAFE_INTEGER, ...range }) => {
      const begunAt = queue.now();
      const rows = await events.range({ tenant, conversation }, { ...range, upTo });
      const last = rows.at(-1);
      if (last) queue.seen(last, last.seq, begunAt);
      return rows;
    }),
    readEvent: begun(({ tenant, conversation, id }) => events.find({ tenant, conversation }, id)),
    head: begun(({ tenant, conversation }) => queue.readLast({ tenant, conversation })),
    addressed: begun(({ after, upTo, ...key }) => events.addressed(key, { after, upTo })),
    conversations: begun((query) => events.conversations(query)),

    acquire: begun((key, lease) => acquire(actors, key, lease)),
    compareAndSet: begun((key, expect, change) => actors.update(key, expect, change)),
    requestCancel: begun(
      async (key, turn) => (await actors.update(key, { turn }, { cancel: turn })) !== null,
    ),
    park: begun((key, parked, expected) => park(actors, key, { parked, expected })),
    readActor: begun((key) => actors.find(key)),
    listActors: begun((log) => actors.list(log)),
    due: begun((query) => findDue(documents, query)),

    putOnce: begun((key, data, at) => putOnce(registers, key, data, at)),
    readEntry: begun((key) => registers.find(key)),
    swap: begun((key, from, to) => registers.replace(key, from, to)),
    expire: begun(async (shelf, before) => {
      let removed = 0;
      for (;;) {
        const step = await registers.removeBefore(shelf, before, STEP);
        removed += step;
        if (step < STEP) return removed;
      }
    }),
    deleteConversation: begun((log) =>
      deleteInOrder(log, {
        step: STEP,
        unaddress: () => events.unaddress(log),
        actors: () => actors.remove(log),
        keys: (range) => registers.keysBetween(range),
        registers: (keys) => registers.remove(keys),
        async events() {
          queue.forgetLog(log);
          return events.removeNewest(log, { after: 0, limit: STEP });
        },
        untilForgotten: queue.untilDistrusted,
      }),
    ),

    // Its servers tell by what they answer.
    check: () => Promise.resolve(),
    async close() {
      await work.close();
      await documents.close();
    },
  };
}

/** Counts the work that has begun, so that `close` can wait for it (G2). */
function createWorkTracker() {
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  function begun<A extends unknown[], T>(work: (...args: A) => Promise<T>) {
    return (...args: A): Promise<T> => {
      if (isClosed) return Promise.reject(new TroupeError('store_unavailable', 'the store is closed'));
      const running = work(...args);
      underWay.add(running);
      const done = () => void underWay.delete(running);
      running.then(done, done);
      return running;
    };
  }

  async function close(): Promise<void> {
    isClosed = true;
    await Promise.allSettled(underWay);
  }

  return { begun, close };
}

async function acquire(
  actors: ActorDocuments,
  key: ActorKey,
  { owner, now, until }: { owner: string; now: number; until: number },
): Promise<AcquireOutcome> {
  for (let round = 1; ; round += 1) {
    const row = await actors.update(key, { freeAt: now }, { owner, until, raiseFence: true });
    if (row) return { kind: 'acquired', row };
    // Most often it is held, and a read is cheaper than an insert that fails.
    const held = await actors.find(key);
    if (held && (held.until >= now || round >= MAX_ROUNDS)) return { kind: 'busy', until: held.until };
    const fresh = { ...newActorRow(key), fence: 1, owner, until };
    if (!held && (await actors.insert(fresh))) return { kind: 'acquired', row: fresh };
  }
}

async function park(
  actors: ActorDocuments,
  key: ActorKey,
  { parked, expected }: { parked: string | null; expected: string | null | undefined },
): Promise<boolean> {
  const condition = expected === undefined ? {} : { parked: expected };
  for (;;) {
    if (await parkExisting(actors, key, condition, parked)) return true;
    if ((expected ?? null) === null && (await actors.insert({ ...newActorRow(key), parked }))) return true;
    if (expected !== undefined && ((await actors.find(key))?.parked ?? null) !== expected) return false;
  }
}

/** Works on a record that cannot be read as well: putting it aside is all that can be done about it. */
async function parkExisting(
  actors: ActorDocuments,
  key: ActorKey,
  condition: ActorCondition,
  parked: string | null,
): Promise<boolean> {
  try {
    return (await actors.update(key, condition, { parked })) !== null;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'actor_corrupt') return true;
    throw error;
  }
}

async function putOnce(registers: RegisterDocuments, key: EntryKey, data: string, at: number) {
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    if (await registers.insert(key, data, at)) return { inserted: true, data };
    const winner = await registers.find(key);
    // Null: it expired in between.
    if (winner !== null) return { inserted: false, data: winner };
  }
  throw new TroupeError('store_unavailable', `${key.shelf} ${key.key} comes and goes; try again`, {
    ...key,
  });
}

interface Due extends ActorKey {
  /** Where it stands among those of its agent; those in the middle of something, or whose time has come, stand first. */
  at: number;
}

/** Bounds what one look holds in memory. */
const MAX_UNFINISHED = 20_000;

/** Actors with something to do, each once. What they are found by may change meanwhile: the answer is a hint. */
async function findDue(
  { actors, events }: Pick<Documents, 'actors' | 'events'>,
  { now, clock, since, limit }: Parameters<StoreDriver['due']>[0],
): Promise<ActorKey[]> {
  const [unfinished, addressees] = await Promise.all([
    actors.unfinished({ now, clock, limit: MAX_UNFINISHED }),
    events.addressees(since),
  ]);
  const due = new Map<string, Due>();
  for (const key of unfinished) due.set(nameOf(key), { ...keyOf(key), at: -1 });
  const others = addressees.filter((each) => !due.has(nameOf(each)));
  for (const each of await unprocessed(actors, others, now))
    due.set(nameOf(each), { ...keyOf(each), at: each.at });
  return takeTurns([...due.values()])
    .slice(0, limit)
    .map(keyOf);
}

async function unprocessed(
  actors: Documents['actors'],
  addressees: readonly Addressee[],
  now: number,
): Promise<Addressee[]> {
  if (addressees.length === 0) return [];
  const rows = new Map((await actors.findMany(addressees.map(keyOf))).map((row) => [nameOf(row), row]));
  return addressees.filter((each) => {
    const row = rows.get(nameOf(each));
    return !row || (row.until < now && row.parked === null && row.processed < each.seq);
  });
}

/**
 * Names of agents take turns, oldest first within one, so that a pile of work for an agent that nobody serves holds up
 * no other.
 */
function takeTurns(due: readonly Due[]): Due[] {
  const places = new Map<string, number>();
  const ranked = due
    .toSorted((a, b) => a.at - b.at)
    .map((each) => {
      const place = places.get(each.agent) ?? 0;
      places.set(each.agent, place + 1);
      return { each, place };
    });
  return ranked.toSorted((a, b) => a.place - b.place || a.each.at - b.each.at).map(({ each }) => each);
}

function keyOf({ tenant, conversation, agent }: ActorKey): ActorKey {
  return { tenant, conversation, agent };
}

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}
