import { TroupeError } from '../../base/errors.ts';
import { newActorRow } from '../actor-row.ts';
import { deleteInOrder, untilFewer } from '../delete-conversation.ts';
import type {
  AcquireOutcome,
  ActorKey,
  ActorRow,
  ActorStep,
  EntryKey,
  NewEventRow,
  StoreDriver,
} from '../driver.ts';
import { settle, step, withoutEvents, createOwnRuns } from './actor-steps.ts';
import { type AppendQueueOptions, type AppendStats, createAppendQueue } from './append-queue.ts';
import type { ActorCondition, ActorDocuments, Documents, EntryDocuments } from './documents.ts';
import { findDue } from './find-due.ts';

/** A store driver over single-document operations. */
export interface DocumentDriver extends StoreDriver {
  /** Counts since the driver was created. */
  readonly stats: Readonly<AppendStats>;
}

/** Bounds loops in which another process may win every round. */
const MAX_ROUNDS = 20;
/** Documents that one operation removes, so few that a slow server stays within the timeout. */
const STEP = 100;
/** The entry that `check` writes and removes. */
const TRIAL: EntryKey = { tenant: '', namespace: 'meta', key: 'trial' };

/**
 * The store on single-document operations, used by databases and by the simulation. Contains every algorithm of the port
 * that needs more than one operation. Owns the appends (see `append-queue.ts`) and the running calls.
 *  G1  Every method is safe against concurrent calls of other processes, and against a crash after any of its
 *      operations: the next caller can continue from the state it leaves.
 *  G2  `close` refuses new calls and waits for the running ones.
 */
export function createDocumentDriver(documents: Documents, options: AppendQueueOptions): DocumentDriver {
  const { events, actors, entries } = documents;
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
      if (last) queue.seen(last, last, begunAt);
      return rows;
    }),
    readEvent: begun(({ tenant, conversation, id }) => events.find({ tenant, conversation }, id)),
    head: begun(async ({ tenant, conversation }) => (await queue.readLast({ tenant, conversation })).seq),
    addressed: begun(({ after, upTo, ...key }) => events.addressed(key, { after, upTo })),
    conversations: begun((query) => events.conversations(query)),

    inbox: createInbox(documents, begun),

    ...createStepMethods(documents, queue, begun),
    requestAbort: begun(async (key, turn) => (await actors.update(key, { turn }, { abort: turn })) !== null),
    park: begun((key, parked, expected) => park(actors, key, { parked, expected })),
    readActor: begun(async (key) => {
      const row = await actors.find(key);
      return row && withoutEvents(row);
    }),
    listActors: begun(async (log) => (await actors.list(log)).map(withoutEvents)),
    due: begun((query) => findDue(documents, query)),

    putOnce: begun((key, data, at) => putOnce(entries, key, data, at)),
    readEntry: begun((key) => entries.find(key)),
    readEntries: begun((keys) => entries.findMany(keys)),
    entryKeys: begun((range) => entries.keysBetween(range)),
    removeEntries: begun((keys) => entries.remove(keys)),
    swap: begun((key, from, to) => entries.replace(key, from, to)),
    expire: begun((namespace, before) =>
      untilFewer(STEP, () => entries.removeBefore(namespace, before, STEP)),
    ),
    replaceData: begun((log, rows) => events.replaceData(log, rows)),
    scrub: begun(() => documents.scrub()),
    deleteConversation: begun((log) =>
      deleteInOrder(log, {
        step: STEP,
        unaddress: () => events.unaddress(log),
        actors: () => actors.remove(log),
        keys: (range) => entries.keysBetween(range),
        entries: (keys) => entries.remove(keys),
        async events() {
          queue.forgetLog(log);
          return events.removeNewest(log, { after: 0, limit: STEP });
        },
        untilForgotten: queue.untilDistrusted,
      }),
    ),

    // A demoted primary, or a server with a full disk, answers reads and refuses writes.
    async check() {
      await entries.insert(TRIAL, '', 0);
      await entries.remove([TRIAL]);
    },
    async close() {
      await work.close();
      await documents.close();
    },
  };
}

function createInbox(
  { standings, passages }: Documents,
  begun: ReturnType<typeof createWorkTracker>['begun'],
): StoreDriver['inbox'] {
  return {
    saveStanding: begun((log, standing) => standings.save(log, standing)),
    standingSeq: begun((log) => standings.seqOf(log)),
    forget: begun(async (log) => {
      await standings.remove(log);
      await passages.remove(log);
    }),
    standings: begun((query) => standings.list(query)),
    countStandings: begun((filter) => standings.count(filter)),
    behind: begun((query) => standings.behind(query)),
    savePassages: begun((log, some) => passages.save(log, some)),
    findPassages: begun((query) => passages.find(query)),
  };
}

function createStepMethods(
  documents: Documents,
  queue: ReturnType<typeof createAppendQueue>,
  begun: ReturnType<typeof createWorkTracker>['begun'],
): Pick<StoreDriver, 'acquire' | 'compareAndSet' | 'step'> {
  const { actors, entries } = documents;
  const parts = {
    documents,
    append: (rows: readonly NewEventRow[]) => queue.append(rows),
    putOnce: ({ key, data, at }: NonNullable<ActorStep['entries']>[number]) =>
      putOnce(entries, key, data, at),
    runs: createOwnRuns(),
  };
  return {
    acquire: begun(async (key, lease, told) => {
      const acquired = await acquire(actors, key, lease);
      return acquired.kind === 'acquired' ? settle(parts, acquired.row, told) : acquired;
    }),
    compareAndSet: begun(
      async (key, expect, change) => (await step(parts, key, { expect, change }))?.row ?? null,
    ),
    step: begun(documents.step ? wholeSteps(documents.step, queue) : (key, asked) => step(parts, key, asked)),
  };
}

function wholeSteps(
  make: NonNullable<Documents['step']>,
  queue: ReturnType<typeof createAppendQueue>,
): StoreDriver['step'] {
  return async (key, asked) => {
    const begunAt = queue.now();
    const made = await make(key, asked, queue.known(key));
    if (!made) return null;
    for (const row of made.placed) queue.seen(row, row, begunAt);
    await asked.told?.(made.appended);
    return made.outcome;
  };
}

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
): Promise<{ kind: 'acquired'; row: ActorRow } | Extract<AcquireOutcome, { kind: 'busy' }>> {
  for (let round = 1; ; round += 1) {
    const row = await actors.update(key, { freeAt: now }, { owner, until, raiseFence: true });
    if (row) return { kind: 'acquired', row };
    // Usually the document exists, and a read is cheaper than a failing insert.
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

/** Also parks a record that cannot be read, because nothing else can be done with it. */
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

async function putOnce(entries: EntryDocuments, key: EntryKey, data: string, at: number) {
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    if (await entries.insert(key, data, at)) return { inserted: true, data };
    const winner = await entries.find(key);
    // Null: the entry expired in between.
    if (winner !== null) return { inserted: false, data: winner };
  }
  throw new TroupeError('store_unavailable', `${key.namespace} ${key.key} keeps expiring; try again`, {
    ...key,
  });
}
