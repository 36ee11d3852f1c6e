import { deleteInOrder, type DeletionSteps, untilFewer } from '../delete-conversation.ts';
import type { AppendOutcome, StoreDriver } from '../driver.ts';
import { createActorRows, createActorTable, createDueQuery } from './actor-rows.ts';
import { closedError, createCheckpoints, createWriteQueue, type WriteQueue } from './write-queue.ts';
import { createConversationList, createEventTable, createLogNumbers } from './event-table.ts';
import { type Database, openDatabase, prepareFile, runStatement } from './database.ts';
import { checkFiles } from './check-files.ts';
import { openLogMark } from './log-mark.ts';
import { createStoreTrouble, sqliteError } from './sqlite-error.ts';
import { createEntryTable } from './entry-table.ts';
import { createPassageTable } from './passage-table.ts';
import { createStandingTable } from './standing-table.ts';
import { createTables } from './schema.ts';

/**
 * What survives. `disk`: what was promised to the outside (events, stops, started tool calls) survives a power loss.
 * `process`: the end of the process loses nothing; a power loss takes the last moments, started tool calls among them, and
 * leaves a log without a gap.
 */
export type Durability = 'disk' | 'process';

export interface SqliteDriverOptions {
  /** A file, or ':memory:'. */
  path: string;
  /** Maximum size of the file in pages of 4 kB; tests simulate a full disk with it. */
  maxPages?: number;
  /** Default `disk`. */
  durability?: Durability | undefined;
  onWarning?: (error: unknown, where: string) => void;
}

/** Namespaces whose entries the outside world depends on: started tool calls, the store's secret. */
const PROMISED: ReadonlySet<string> = new Set(['effect', 'meta']);

/** Size of the trial write that `check` makes. */
const TRIAL_BYTES = 131_072;

/** Minimum that one write adds to the write-ahead log: the pages of a row and of its indexes. */
const WRITE_BYTES = 16_384;

/** Bounds how long one step of an expiry or a removal holds the event loop. */
const STEP = 500;

/** In WAL mode a commit is synced only if one of its writes must survive a power loss (S5). */
const SETTINGS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA cache_size = -16000;
  PRAGMA temp_store = MEMORY;
`;

/** The embedded store. One process at a time: see `data-lock.ts`. */
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
  const { mark, trouble, checkpoints, queue, tryWrite } = parts;
  return {
    ...createEventMethods(parts),
    ...createStandingMethods(parts),
    ...createActorMethods(parts),
    ...createEntryMethods(parts),
    deleteConversation: (log) => mark.whileRemoving(() => deleteInOrder(log, removalSteps(parts, log))),
    check: () => trouble.check(tryWrite),

    async close() {
      queue.close();
      mark.close();
      await checkpoints.close();
      if (database.isOpen) database.close();
    },
  };
}

type Parts = ReturnType<typeof openParts>;

/** The tables of one database, and its single queue of writes. */
function openParts(
  database: Database,
  { path, onWarning = () => {}, durability = 'disk' }: SqliteDriverOptions,
) {
  const mark = openLogMark(database, path);
  const trouble = createStoreTrouble(onWarning);
  const logs = createLogNumbers(database);
  const events = createEventTable(database, logs);
  const rows = createActorRows(database, logs);
  const actors = createActorTable(database, rows);
  const entries = createEntryTable(database);
  const standings = createStandingTable(database);
  const passages = createPassageTable(database);
  const forget = () => {
    logs.forget();
    events.forget();
    rows.forget();
  };
  const checkpoints = createCheckpoints(path);
  const commits = createWriteQueue(database, path, forget, {
    failed: (error) => trouble.failed(error),
    wrote(writes) {
      trouble.wrote();
      checkpoints.wrote(writes * WRITE_BYTES);
    },
  });
  const queue: WriteQueue = {
    write: (work, needed) => commits.write(work, durability === 'disk' ? needed : 'ordered'),
    close: () => commits.close(),
  };

  /** Reads run at once, on committed rows (W4). */
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
  const tryWrite = createTrial(database, queue);
  const tables = { events, rows, actors, entries, standings, passages, listConversations, due };
  return { ...tables, mark, trouble, checkpoints, queue, read, tryWrite };
}

/** A write that changes nothing. It needs new pages, so that it fails while the disk is full. */
function createTrial(database: Database, queue: WriteQueue): () => Promise<void> {
  const insertTrial = database.prepare(
    `INSERT INTO registers (tenant, shelf, key, at, data) VALUES ('', -1, 'trial', 0, zeroblob(${TRIAL_BYTES}))`,
  );
  const removeTrial = database.prepare(`DELETE FROM registers WHERE tenant = '' AND shelf = -1`);

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

function createEventMethods({
  events,
  listConversations,
  queue,
  mark,
  checkpoints,
  read,
}: Parts): EventMethods {
  async function append(news: Parameters<StoreDriver['append']>[0]): Promise<AppendOutcome[]> {
    const { outcomes, last } = await queue.write(() => {
      let newest = 0;
      const outcomes = events.append(news, (num) => (newest = num));
      return { outcomes, last: newest };
    }, 'synced');
    mark.raise(last);
    checkpoints.wrote(news.reduce((sum, { data }) => sum + data.length, 0));
    return outcomes;
  }

  return {
    append,
    readEvents: (query) => read(() => events.readEvents(query)),
    readEvent: (query) => read(() => events.readEvent(query)),
    head: (query) => read(() => events.head(query)),
    addressed: (query) => read(() => events.addressed(query)),
    conversations: (query) => listConversations(query, read),
  };
}

type StandingMethods = Pick<
  StoreDriver,
  'saveStanding' | 'standingSeq' | 'standings' | 'countStandings' | 'behind' | 'savePassages' | 'findPassages'
>;

function createStandingMethods({ standings, passages, queue, read }: Parts): StandingMethods {
  return {
    saveStanding: (log, standing) => queue.write(() => standings.save(log, standing), 'ordered'),
    standingSeq: (log) => read(() => standings.seqOf(log)),
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
  'acquire' | 'compareAndSet' | 'step' | 'requestCancel' | 'park' | 'readActor' | 'listActors' | 'due'
>;

function createActorMethods(parts: Parts): ActorMethods {
  const { actors, rows, due, queue, read } = parts;
  return {
    step: createSteps(parts),
    acquire: (key, lease) => queue.write(() => actors.acquire(key, lease), 'ordered'),
    compareAndSet: (key, expect, change) =>
      queue.write(() => actors.compareAndSet(key, expect, change), 'ordered'),
    requestCancel: (key, turn) => queue.write(() => actors.requestCancel(key, turn), 'synced'),
    park: (key, parked, expected) => queue.write(() => actors.park(key, parked, expected), 'synced'),
    readActor: (key) => read(() => rows.read(key)),
    listActors: (query) => read(() => rows.list(query)),
    due: (query) => read(() => due(query)),
  };
}

function createSteps({ actors, events, entries, queue, mark, checkpoints }: Parts): StoreDriver['step'] {
  return async (key, step) => {
    const { expect, change, takes, entries: puts = [], events: news = [], isRepeated, rests, told } = step;
    // A begun turn is begun again after a power loss; what a commit says is promised.
    const sync = news.length > 0 && !isRepeated ? 'synced' : 'ordered';
    const done = await queue.write(() => {
      const actor = actors.expecting(key, expect);
      if (!actor) return null;
      for (const { key: entry, data, at } of puts) entries.putOnce(entry, data, at);
      let newest = 0;
      const appended = events.appendStep(news, (num) => (newest = num));
      if (!rests)
        return {
          newest,
          appended,
          outcome: { row: actors.change(actor, { ...change, takes }), isAddressed: false },
        };
      const processed = change.processed ?? actor.row.processed;
      const head = Math.max(processed, events.head(key));
      const isAddressed = events.addressed({ ...key, after: processed, upTo: head }).length > 0;
      const rest = isAddressed ? {} : { owner: '', until: 0, processed: head };
      const row = actors.change(actor, { ...change, ...rest, takes });
      return { newest, appended, outcome: { row, isAddressed } };
    }, sync);
    if (!done) return null;
    if (sync === 'synced') mark.raise(done.newest);
    if (news.length > 0) checkpoints.wrote(news.reduce((sum, { row }) => sum + row.data.length, 0));
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
