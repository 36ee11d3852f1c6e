import { TroupeError } from '../../base/errors.ts';
import { type Database, getRow, rollback, sqliteError } from './database.ts';
import { Worker } from 'node:worker_threads';

/**
 * Group commit. Owns the order of writes and the only transaction of the database.
 *  W1  Writes requested in one turn of the event loop are committed together, in the order of the requests.
 *  W2  The promise of a write settles only after its commit. With a synced write in the batch the commit is synced (S5).
 *  W3  A failing write fails no other: the batch is rolled back, and each write gets its own transaction.
 *  W4  No transaction is open between two turns of the event loop, so every read sees committed rows only.
 *  W5  Caches are cleared (`forget`) when a transaction is rolled back, and before the first write after another connection
 *      has written. So nothing is ever compared with data that is not in the file.
 */
type Sync = 'synced' | 'ordered';

/**
 * Which writes survive. `disk`: writes that the outside world depends on (events, aborts, started tool calls) survive a power
 * loss. `process`: all writes survive the end of the process. A power loss takes those of the last moments, started tool calls
 * among them, and leaves a log without a gap.
 */
export type Durability = 'disk' | 'process';

export interface WriteQueue {
  /** Runs `work` synchronously in a transaction. It may run again after a rollback, so it must keep no state. */
  write<T>(work: () => T, sync: Sync): Promise<T>;
  /** Commits the queued writes, and refuses later ones. */
  close(): void;
}

interface Write {
  work: () => unknown;
  sync: Sync;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

interface WriteQueueOptions {
  path: string;
  /** `process`: no commit waits for the disk. */
  durability: Durability;
  /** No other connection writes to the file, so the queue need not check for such writes (W5). */
  isOwned: boolean;
  forget: () => void;
  failed: (error: TroupeError) => void;
  /** Called after each commit, before the promises of its writes settle. */
  wrote: (writes: number, sync: Sync) => void;
}

/** Maximum writes of one commit, which bounds how long it blocks the event loop. */
const MAX_BATCH = 256;

export function createWriteQueue(database: Database, options: WriteQueueOptions): WriteQueue {
  const { path, failed, wrote } = options;
  const { begin, commit, undo } = createTransaction(database, options);
  let queue: Write[] = [];
  let isClosed = false;

  function rejectAll(batch: readonly Write[], thrown: unknown): void {
    const error = sqliteError(thrown, path);
    failed(error);
    for (const write of batch) write.reject(error);
  }

  function runBatch(batch: readonly Write[]): void {
    let sync: Sync = 'ordered';
    for (const write of batch) if (write.sync === 'synced') sync = 'synced';
    try {
      begin(sync);
    } catch (error) {
      rollback(database);
      return rejectAll(batch, error);
    }
    const results: unknown[] = [];
    try {
      for (const write of batch) results.push(write.work());
    } catch (error) {
      undo();
      if (batch.length === 1) return rejectAll(batch, error);
      for (const write of batch) runBatch([write]);
      return;
    }
    try {
      commit.run();
    } catch (error) {
      undo();
      return rejectAll(batch, error);
    }
    wrote(batch.length, sync);
    for (const [index, write] of batch.entries()) write.resolve(results[index]);
  }

  function flush(): void {
    const batch = queue.length <= MAX_BATCH ? queue : queue.slice(0, MAX_BATCH);
    queue = queue.slice(batch.length);
    if (queue.length > 0) setImmediate(flush);
    if (batch.length > 0) runBatch(batch);
  }

  return {
    write<T>(work: () => T, sync: Sync): Promise<T> {
      if (isClosed) return Promise.reject(closedError(path));
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      if (queue.length === 0) setImmediate(flush);
      queue.push({ work, sync, resolve: resolve as Write['resolve'], reject });
      return promise;
    },
    close() {
      isClosed = true;
      while (queue.length > 0) flush();
    },
  };
}

function createTransaction(
  database: Database,
  { durability, isOwned, forget }: Pick<WriteQueueOptions, 'durability' | 'isOwned' | 'forget'>,
) {
  const beginning = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const readVersion = database.prepare('PRAGMA data_version');
  let version = versionNow();
  let syncing: Sync = 'synced';

  /** A number that changes with every commit of another connection, and with no commit of this one. */
  function versionNow(): number {
    return getRow<{ data_version: number }>(readVersion)!.data_version;
  }

  function begin(needed: Sync): void {
    const sync = durability === 'disk' ? needed : 'ordered';
    // A sync also makes all earlier writes durable, so an ordered write never survives without those before it.
    if (sync !== syncing) database.exec(`PRAGMA synchronous = ${sync === 'synced' ? 'FULL' : 'NORMAL'}`);
    syncing = sync;
    beginning.run();
    if (isOwned) return;
    const now = versionNow();
    if (now !== version) forget();
    version = now;
  }

  function undo(): void {
    rollback(database);
    forget();
  }

  return { begin, commit, undo };
}

export function closedError(path: string): TroupeError {
  return new TroupeError('store_unavailable', `${path}: the store is closed`, { path });
}

/**
 * Copies the write-ahead log into the database in a thread. After some megabytes of writes a copy takes tens of
 * milliseconds, which would block the event loop. Owns the thread, which starts with the first copy.
 *  1. This is only an optimization: SQLite itself still copies at `wal_autocheckpoint` pages.
 *  2. Only `close` waits for a copy. It ends the thread before the database is closed, because the connection that closes
 *     last removes the log.
 */
interface Checkpoints {
  /** To be called after every commit with the approximate number of written bytes. */
  wrote(bytes: number): void;
  close(): Promise<void>;
}

const EVERY_BYTES = 2 * 1024 * 1024;

/** Code of the thread, as text so that it runs from the sources and from any bundle. The next copy makes up for a failed one. */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(workerData);
  parentPort.on('message', () => {
    try {
      database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {}
    parentPort.postMessage(null);
  });
`;

export function createCheckpoints(path: string): Checkpoints {
  let thread: Worker | null = null;
  let state: 'idle' | 'copying' | 'gone' = path === ':memory:' ? 'gone' : 'idle';
  let waiting = 0;

  function copy(): void {
    waiting = 0;
    state = 'copying';
    thread ??= start();
    thread.postMessage(null);
  }

  function start(): Worker {
    const worker = new Worker(THREAD, { eval: true, workerData: path, execArgv: [], env: {} });
    worker.on('message', () => {
      if (state === 'copying') state = 'idle';
    });
    // Rule 1: SQLite also copies without the thread.
    worker.on('error', () => (state = 'gone'));
    worker.unref();
    return worker;
  }

  return {
    wrote(bytes) {
      waiting += bytes;
      if (waiting >= EVERY_BYTES && state === 'idle') copy();
    },
    async close() {
      state = 'gone';
      await thread?.terminate();
    },
  };
}
