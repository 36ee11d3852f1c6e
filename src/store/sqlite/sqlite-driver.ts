import { makePrivateFile } from '../../private-files.ts';
import { deleteInOrder } from '../delete-conversation.ts';
import type { StoreDriver } from '../driver.ts';
import { createActorRows } from './actor-rows.ts';
import { createActorTable } from './actor-table.ts';
import { createConversationList } from './conversation-list.ts';
import type { Database } from './database.ts';
import { openDatabase } from './database.ts';
import { createDueQuery } from './due-query.ts';
import { createEventTable } from './event-table.ts';
import { createLogNumbers } from './log-numbers.ts';
import { createRegisterTable } from './register-table.ts';
import { migrate } from './schema.ts';
import { sqliteError } from './sqlite-error.ts';
import { closedError, createWriteQueue } from './write-queue.ts';

export interface SqliteDriverOptions {
  /** A file, or ':memory:'. */
  path: string;
  /** The file may not grow beyond this many pages of 4 kB; a test's way to fill the disk. */
  maxPages?: number;
}

/** Registers on which something outside depends: a tool call that begins, the store's secret. */
const PROMISED: ReadonlySet<string> = new Set(['effect', 'meta']);

/** Bounds how long one step of an expiry or a removal holds the event loop. */
const STEP = 500;

/** WAL; a commit is synced if it holds a write that promises something to the outside, and is shared by all that waited for it. */
const SETTINGS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA cache_size = -16000;
  PRAGMA temp_store = MEMORY;
`;

/** The embedded store. One process at a time: see `data-lock.ts`. */
export async function openSqliteDriver({ path, maxPages }: SqliteDriverOptions): Promise<StoreDriver> {
  prepareFile(path);
  const database = openDatabase(path);
  try {
    database.exec(SETTINGS);
    if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${Math.trunc(maxPages)}`);
    migrate(database, path);
    return createDriver(database, path);
  } catch (error) {
    database.close();
    throw sqliteError(error, path);
  }
}

/** SQLite gives the files beside it the same rights. What is wrong with the place, it says itself. */
function prepareFile(path: string): void {
  if (path === ':memory:') return;
  try {
    makePrivateFile(path);
  } catch {
    // See above.
  }
}

function createDriver(database: Database, path: string): StoreDriver {
  const logs = createLogNumbers(database);
  const events = createEventTable(database, logs);
  const rows = createActorRows(database, logs);
  const actors = createActorTable(database, rows);
  const listConversations = createConversationList(database);
  const due = createDueQuery(database);
  const registers = createRegisterTable(database);
  const queue = createWriteQueue(database, path, () => {
    logs.forget();
    events.forget();
    rows.forget();
  });

  /** Reads run at once, on committed rows (W4). */
  async function read<T>(work: () => T): Promise<T> {
    if (!database.isOpen) throw closedError(path);
    try {
      return work();
    } catch (error) {
      throw sqliteError(error, path);
    }
  }

  return {
    append: (news) => queue.write(() => events.append(news), 'synced'),
    readEvents: (query) => read(() => events.readEvents(query)),
    readEvent: (query) => read(() => events.readEvent(query)),
    head: (query) => read(() => events.head(query)),
    addressed: (query) => read(() => events.addressed(query)),
    conversations: (query) => listConversations(query, read),

    acquire: (key, lease) => queue.write(() => actors.acquire(key, lease), 'ordered'),
    compareAndSet: (key, expect, change) =>
      queue.write(() => actors.compareAndSet(key, expect, change), 'ordered'),
    requestCancel: (key, turn) => queue.write(() => actors.requestCancel(key, turn), 'synced'),
    park: (key, parked) => queue.write(() => actors.park(key, parked), 'synced'),
    readActor: (key) => read(() => rows.read(key)),
    listActors: (query) => read(() => rows.list(query)),
    due: (query) => read(() => due(query)),

    putOnce: (key, data, at) =>
      queue.write(() => registers.putOnce(key, data, at), PROMISED.has(key.shelf) ? 'synced' : 'ordered'),
    readRegister: (key) => read(() => registers.readRegister(key)),
    swap: (key, from, to) => queue.write(() => registers.swap(key, from, to), 'ordered'),
    async expire(shelf, before) {
      let removed = 0;
      for (;;) {
        const step = await queue.write(() => registers.expireSome(shelf, before, STEP), 'ordered');
        removed += step;
        if (step < STEP) return removed;
      }
    },
    deleteConversation: (log) =>
      deleteInOrder(log, {
        step: STEP,
        unaddress: () => queue.write(() => events.unaddress(log), 'ordered'),
        actors: () => queue.write(() => rows.remove(log), 'ordered'),
        keys: (range) => read(() => registers.keysBetween(range)),
        registers: (keys) => queue.write(() => keys.forEach(registers.remove), 'ordered'),
        events: () => queue.write(() => events.removeNewest(log, STEP), 'synced'),
      }),

    async close() {
      queue.close();
      if (database.isOpen) database.close();
    },
  };
}
