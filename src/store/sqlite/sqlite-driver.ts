import { setTimeout } from 'node:timers/promises';
import { deleteInOrder, type DeletionSteps, untilFewer } from '../delete-conversation.ts';
import type { StoreDriver } from '../driver.ts';
import { createActorRows, createActorTable, createDueQuery, createSettle } from './actor-rows.ts';
import { createConversationList, createEventTable } from './event-table.ts';
import { createStoredLogs } from './stored-logs.ts';
import {
  closedError,
  createCheckpoints,
  createWriteQueue,
  type Durability,
  type WriteQueue,
} from './write-queue.ts';
import {
  type Database,
  getRow,
  openDatabase,
  prepareFile,
  runStatement,
  createStoreTrouble,
  sqliteError,
} from './database.ts';
import { checkFiles, openLogMark } from './check-files.ts';
import { createEntryTable } from './entry-table.ts';
import { createPassageTable, createStandingTable } from './inbox-tables.ts';
import { createTables } from './schema.ts';

export type { Durability } from './write-queue.ts';

interface SqliteDriverOptions {
  /** Path of the file, or ':memory:'. */
  path: string;
  /** Maximum size of the file in pages of 4 kB, by which tests simulate a full disk. Default: unlimited. */
  maxPages?: number;
  /** Default `disk`. */
  durability?: Durability | undefined;
  /** This process holds the lock of the data directory, so that no other process writes to the file. */
  isOwned?: boolean;
  onWarning?: (error: unknown, where: string) => void;
}

/** Namespaces whose entries must survive a power loss: started tool calls and the store's secret (S5). */
const PROMISED: ReadonlySet<string> = new Set(['effect', 'meta']);

const TRIAL_BYTES = 131_072;

/** Minimum number of bytes that one write adds to the write-ahead log: the pages of a row and of its indexes. */
const WRITE_BYTES = 16_384;

/** Rows of one step of an expiry or a removal, which bounds how long it blocks the event loop. */
const STEP = 500;

/**
 * The database is in WAL mode, where a commit is synced only if one of its writes must survive a power loss (S5). Removed and
 * replaced data is overwritten with zeros, so that no older copies of erased data stay in the file.
 */
const SETTINGS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA cache_size = -16000;
  PRAGMA temp_store = MEMORY;
  PRAGMA secure_delete = ON;
`;

/** Opens the embedded store, for one process at a time; see `data-lock.ts`. */
export async function openSqliteDriver(options: SqliteDriverOptions): Promise<StoreDriver> {
  const { path, maxPages } = options;
  checkFiles(path);
  prepareFile(path);
  const database = openDatabase(path);
  try {
    database.exec(SETTINGS);
    if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`);
    createTables(database);
    return createDriver(database, options);
  } catch (error) {
    database.close();
    throw sqliteError(error, path);
  }
}

function createDriver(database: Database, options: SqliteDriverOptions): StoreDriver {
  const parts = openParts(database, options);
  const { mark, trouble, checkpoints, queue, settle, tryWrite } = parts;
  return {
    ...createEventMethods(parts),
    ...createActorMethods(parts),
    ...createEntryMethods(parts),
    replaceData: (log, rows) =>
      inSteps(rows, (some) => parts.queue.write(() => parts.events.replaceData(log, some), 'synced')),
    scrub: () => scrub(parts),
    deleteConversation: (log) => mark.whileRemoving(() => deleteInOrder(log, removalSteps(parts, log))),
    inbox: createInbox(parts),
    check: () => trouble.check(tryWrite),

    async close() {
      await settle();
      queue.close();
      mark.close();
      await checkpoints.close();
      if (database.isOpen) database.close();
    },
  };
}

type Parts = ReturnType<typeof openParts>;

function openParts(
  database: Database,
  { path, onWarning = () => {}, durability = 'disk', isOwned = path === ':memory:' }: SqliteDriverOptions,
) {
  const mark = openLogMark(database, path);
  const trouble = createStoreTrouble(onWarning);
  const logs = createStoredLogs(database);
  const events = createEventTable(database, logs);
  const rows = createActorRows(database, logs);
  const actors = createActorTable(rows);
  const entries = createEntryTable(database);
  const standings = createStandingTable(database);
  const passages = createPassageTable(database);
  const { written } = events;
  const checkpoints = createCheckpoints(path);
  const queue = createWriteQueue(database, {
    path,
    durability,
    isOwned,
    forget() {
      logs.forget();
      rows.forget();
      Object.assign(written, { newest: 0, size: 0 });
    },
    failed: (error) => trouble.failed(error),
    wrote(writes, sync) {
      trouble.wrote();
      checkpoints.wrote(writes * WRITE_BYTES + written.size);
      written.size = 0;
      if (sync === 'synced') mark.raise(written.newest);
    },
  });

  /** Runs a read at once. It sees committed rows only (W4). */
  async function read<T>(work: () => T): Promise<T> {
    if (!database.isOpen) throw closedError(path);
    try {
      return work();
    } catch (thrown) {
      const error = sqliteError(thrown, path);
      trouble.failed(error);
      throw error;
    }
  }

  const listConversations = createConversationList(database);
  const due = createDueQuery(database);
  const settleSome = createSettle(database);
  /** Removes processed rows of `pending`. The query of due actors skips them, so a failure only makes that query longer. */
  const settle = () => untilFewer(STEP, () => queue.write(() => settleSome(STEP), 'ordered')).catch(() => 0);
  const tryWrite = createTrial(database, queue);
  const tables = { events, rows, actors, entries, standings, passages, listConversations, due };
  return { ...tables, database, path, settle, mark, trouble, checkpoints, queue, read, tryWrite };
}

/** A write that removes again what it inserts. It needs new pages, so it fails while the disk is full. */
function createTrial(database: Database, queue: WriteQueue): () => Promise<void> {
  const insertTrial = database.prepare(
    `INSERT INTO registers (tenant, namespace, key, at, data) VALUES ('', -1, 'trial', 0, zeroblob(${TRIAL_BYTES}))`,
  );
  const removeTrial = database.prepare(`DELETE FROM registers WHERE tenant = '' AND namespace = -1`);

  return () =>
    queue.write(() => {
      runStatement(insertTrial);
      runStatement(removeTrial);
    }, 'synced');
}

type EventMethods = Pick<
  StoreDriver,
  'append' | 'readEvents' | 'readEvent' | 'head' | 'addressed' | 'conversations'
>;

function createEventMethods({ events, listConversations, queue, read }: Parts): EventMethods {
  return {
    append: (rows) => queue.write(() => events.append(rows), 'synced'),
    readEvents: (query) => read(() => events.readEvents(query)),
    readEvent: (query) => read(() => events.readEvent(query)),
    head: (query) => read(() => events.head(query)),
    addressed: (query) => read(() => events.addressed(query)),
    conversations: (query) => listConversations(query, read),
  };
}

function createInbox({ events, standings, passages, queue, read }: Parts): StoreDriver['inbox'] {
  return {
    saveStanding: (log, standing) => queue.write(() => standings.save(log, standing), 'ordered'),
    standingSeq: (log) => read(() => standings.seqOf(log)),
    forget: (log) => queue.write(() => events.forgetInbox(log), 'ordered'),
    standings: (query) => read(() => standings.list(query)),
    countStandings: (filter) => read(() => standings.count(filter)),
    behind: (query) => read(() => standings.behind(query)),
    async savePassages(log, some) {
      for (const passage of some) await queue.write(() => passages.save(log, passage), 'ordered');
    },
    findPassages: (query) => read(() => passages.find(query)),
  };
}

type ActorMethods = Pick<
  StoreDriver,
  'acquire' | 'compareAndSet' | 'step' | 'requestAbort' | 'park' | 'readActor' | 'listActors' | 'due'
>;

function createActorMethods(parts: Parts): ActorMethods {
  const { actors, rows, due, settle, queue, read } = parts;
  return {
    step: createSteps(parts),
    acquire: (key, lease) => queue.write(() => actors.acquire(key, lease), 'ordered'),
    compareAndSet: (key, expect, change) =>
      queue.write(() => actors.compareAndSet(key, expect, change), 'ordered'),
    requestAbort: (key, turn) => queue.write(() => actors.requestAbort(key, turn), 'synced'),
    park: (key, parked, expected) => queue.write(() => actors.park(key, parked, expected), 'synced'),
    readActor: (key) => read(() => rows.read(key)),
    listActors: (query) => read(() => rows.list(query)),
    async due(query) {
      const found = await read(() => due(query));
      // Not awaited, so that a sweep does not wait for it.
      void settle();
      return found;
    },
  };
}

function createSteps({ actors, events, entries, queue }: Parts): StoreDriver['step'] {
  return async (
    key,
    { expect, change, takes, entries: puts, events: news = [], isRepeated, rests, told },
  ) => {
    // Without events, or if they are appended again after a crash, the step need not survive a power loss (S5).
    const sync = news.length > 0 && !isRepeated ? 'synced' : 'ordered';
    const done = await queue.write(() => {
      const actor = actors.expecting(key, expect);
      if (!actor) return null;
      for (const { key: entry, data, at } of puts ?? []) entries.putOnce(entry, data, at);
      const appended = events.appendStep(news);
      const upTo = rests ? events.restOf(key, change.processed ?? actor.row.processed) : null;
      const rest = upTo !== null && { owner: '', until: 0, processed: upTo };
      const isAddressed = rests === true && upTo === null;
      const row = actors.change(actor, { ...change, ...rest, takes });
      return { appended, outcome: { row, isAddressed } };
    }, sync);
    if (!done) return null;
    await told?.(done.appended);
    return done.outcome;
  };
}

type EntryMethods = Pick<
  StoreDriver,
  'putOnce' | 'readEntry' | 'readEntries' | 'entryKeys' | 'removeEntries' | 'swap' | 'expire'
>;

function createEntryMethods({ entries, queue, read }: Parts): EntryMethods {
  return {
    putOnce: (key, data, at) =>
      queue.write(() => entries.putOnce(key, data, at), PROMISED.has(key.namespace) ? 'synced' : 'ordered'),
    readEntry: (key) => read(() => entries.readEntry(key)),
    readEntries: (keys) => read(() => keys.map(entries.readEntry)),
    entryKeys: (range) => read(() => entries.keysBetween(range)),
    removeEntries: (keys) => queue.write(() => keys.forEach(entries.remove), 'ordered'),
    swap: (key, from, to) => queue.write(() => entries.swap(key, from, to), 'ordered'),
    expire: (namespace, before) =>
      untilFewer(STEP, () => queue.write(() => entries.expireSome(namespace, before, STEP), 'ordered')),
  };
}

/** Writes `STEP` items at a time, which bounds how long one write of an erasure blocks the event loop. */
async function inSteps<T>(items: readonly T[], write: (some: readonly T[]) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += STEP) await write(items.slice(at, at + STEP));
}

/** Pages of the index of words that one write merges, which bounds how long it blocks the event loop. */
const MERGED_PAGES = 500;

/** Merges pages of the index of words. Returns false when FTS5 changed only the command's own row: then nothing is left. */
function merged(database: Database, pages: number): boolean {
  const changes = database.prepare('SELECT total_changes() AS count');
  const before = getRow<{ count: number }>(changes)!.count;
  database.exec(`INSERT INTO terms (terms, rank) VALUES ('merge', ${pages})`);
  return getRow<{ count: number }>(changes)!.count - before >= 2;
}

const TRUNCATIONS = 50;
const TRUNCATION_MS = 20;

/**
 * Removed terms stay in the index of words until its parts are merged, and replaced pages stay in the write-ahead log until
 * it is emptied. Pages of the file itself are overwritten at once (`secure_delete`).
 */
async function scrub({ queue, read, database, path }: Parts): Promise<string[]> {
  // The first call marks all parts for a merge, and each further call merges some pages, because the index may be large.
  for (
    let pages = -MERGED_PAGES;
    await queue.write(() => merged(database, pages), 'synced');
    pages = MERGED_PAGES
  );
  if (path === ':memory:') return [];
  const truncate = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
  for (let attempt = 1; attempt <= TRUNCATIONS; attempt += 1) {
    const isBusy = await read(() => getRow<{ busy: number }>(truncate)?.busy !== 0);
    if (!isBusy) return [];
    await setTimeout(TRUNCATION_MS);
  }
  return [
    `${path}-wal is being read by another process and may still have older pages: erase again once it has ended`,
  ];
}

function removalSteps(
  { events, rows, entries, queue, read }: Parts,
  log: Parameters<StoreDriver['deleteConversation']>[0],
): DeletionSteps {
  return {
    step: STEP,
    unaddress: () => queue.write(() => events.unaddress(log), 'ordered'),
    actors: () => queue.write(() => rows.remove(log), 'ordered'),
    keys: (range) => read(() => entries.keysBetween(range)),
    entries: (keys) => queue.write(() => keys.forEach(entries.remove), 'ordered'),
    events: () => queue.write(() => events.removeNewest(log, STEP), 'synced'),
  };
}
