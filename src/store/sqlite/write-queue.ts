import { TroupeError } from '../../errors.ts';
import { type Database, getRow, rollback } from './database.ts';
import { sqliteError } from './sqlite-error.ts';
import { Worker } from 'node:worker_threads';

/**
 * Group commit. Owns the order of writes and the only transaction there is; knows nothing of what is written.
 *  W1  Writes asked for in one turn of the event loop are committed together, in the order they were asked for.
 *  W2  A write is settled only after its commit; with a durable write in the batch the commit is also synced (S5).
 *  W3  A write that fails alone fails no other: the batch is undone and each write gets a transaction of its own.
 *  W4  Between two turns of the event loop no transaction is open, so every read sees committed rows only.
 *  W5  What is remembered of rows is forgotten (`forget`) when a transaction is undone, and before the first write after
 *      another connection has written: nothing is ever compared with what is not in the file.
 */
export type Durability = 'synced' | 'ordered';

export interface WriteQueue {
  /** `work` runs synchronously inside a transaction; it may run again after an undo, so it keeps no state. */
  write<T>(work: () => T, durability: Durability): Promise<T>;
  /** Commits what is queued; every later write is refused. */
  close(): void;
}

/** Hears how each commit went. */
export interface CommitListener {
  failed(error: TroupeError): void;
  wrote(writes: number): void;
}

interface Write {
  work: () => unknown;
  durability: Durability;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** Bounds how long one commit may hold the event loop. */
const MAX_BATCH = 256;

export function createWriteQueue(
  database: Database,
  path: string,
  forget: () => void,
  listener: CommitListener,
): WriteQueue {
  const transaction = createTransaction(database, forget);
  let queue: Write[] = [];
  let isClosed = false;

  function rejectAll(batch: readonly Write[], thrown: unknown): void {
    const error = sqliteError(thrown, path);
    listener.failed(error);
    for (const write of batch) write.reject(error);
  }

  function runBatch(batch: readonly Write[]): void {
    try {
      transaction.begin(batch.some(({ durability }) => durability === 'synced') ? 'synced' : 'ordered');
    } catch (error) {
      rollback(database);
      return rejectAll(batch, error);
    }
    const results: unknown[] = [];
    try {
      for (const write of batch) results.push(write.work());
    } catch (error) {
      transaction.undo();
      if (batch.length === 1) return rejectAll(batch, error);
      for (const write of batch) runBatch([write]);
      return;
    }
    try {
      transaction.commit();
    } catch (error) {
      transaction.undo();
      return rejectAll(batch, error);
    }
    listener.wrote(batch.length);
    for (const [index, write] of batch.entries()) write.resolve(results[index]);
  }

  function flush(): void {
    const batch = queue.length <= MAX_BATCH ? queue : queue.slice(0, MAX_BATCH);
    queue = queue.slice(batch.length);
    if (queue.length > 0) setImmediate(flush);
    if (batch.length > 0) runBatch(batch);
  }

  return {
    write<T>(work: () => T, durability: Durability): Promise<T> {
      if (isClosed) return Promise.reject(closedError(path));
      return new Promise<T>((resolve, reject) => {
        if (queue.length === 0) setImmediate(flush);
        queue.push({ work, durability, resolve: resolve as Write['resolve'], reject });
      });
    },
    close() {
      isClosed = true;
      while (queue.length > 0) flush();
    },
  };
}

/** The only transaction of the database. */
function createTransaction(database: Database, forget: () => void) {
  const beginning = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const readVersion = database.prepare('PRAGMA data_version');
  let version = versionNow();
  let syncing: Durability = 'synced';

  /** A sync also makes all earlier writes durable, so a write that is only ordered never outlives those before it. */
  function setSync(needed: Durability): void {
    if (needed === syncing) return;
    database.exec(`PRAGMA synchronous = ${needed === 'synced' ? 'FULL' : 'NORMAL'}`);
    syncing = needed;
  }

  /** Changes with every commit of another connection, and with none of ours. */
  function versionNow(): number {
    return getRow<{ data_version: number }>(readVersion)!.data_version;
  }

  function begin(durability: Durability): void {
    setSync(durability);
    beginning.run();
    const now = versionNow();
    if (now !== version) forget();
    version = now;
  }

  function undo(): void {
    rollback(database);
    forget();
  }

  return { begin, commit: () => void commit.run(), undo };
}

export function closedError(path: string): TroupeError {
  return new TroupeError('store_unavailable', `${path}: the store is closed`, { path });
}

/**
 * Copies the write-ahead log into the database in a thread of its own. After some megabytes of writes that takes tens of
 * milliseconds, for which the event loop would stand still. Owns the thread, which begins with the first copy.
 *  1. It is a help, not a promise: SQLite still copies by itself what has come to `wal_autocheckpoint` pages.
 *  2. Nobody waits for it but `close`, which ends the thread before the database is closed: the last connection to be
 *     closed removes the log.
 */
interface Checkpoints {
  /** Told of every commit; `bytes` are of what was written, roughly. */
  wrote(bytes: number): void;
  close(): Promise<void>;
}

const EVERY_BYTES = 2 * 1024 * 1024;

/** As text, so that it runs from the sources and from any bundle. A copy that fails is made with the next one. */
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
    // See 1.
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
