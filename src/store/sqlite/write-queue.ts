import { TroupeError } from '../../errors.ts';
import type { Database } from './database.ts';
import { getRow, rollback } from './database.ts';
import { sqliteError } from './sqlite-error.ts';

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
  told: CommitListener,
): WriteQueue {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const readVersion = database.prepare('PRAGMA data_version');
  let version = versionNow();
  let queue: Write[] = [];
  let syncing: Durability = 'synced';

  /** A sync makes the whole log of writes before it durable, so what is merely ordered never survives what came before it. */
  function setSync(batch: readonly Write[]): void {
    const needed = batch.some(({ durability }) => durability === 'synced') ? 'synced' : 'ordered';
    if (needed === syncing) return;
    database.exec(`PRAGMA synchronous = ${needed === 'synced' ? 'FULL' : 'NORMAL'}`);
    syncing = needed;
  }
  let isClosed = false;

  /** Changes with every commit of another connection, and with none of ours. */
  function versionNow(): number {
    return getRow<{ data_version: number }>(readVersion)!.data_version;
  }

  function start(): void {
    begin.run();
    const now = versionNow();
    if (now !== version) forget();
    version = now;
  }

  function undo(): void {
    rollback(database);
    forget();
  }

  function rejectAll(batch: readonly Write[], thrown: unknown): void {
    const error = sqliteError(thrown, path);
    told.failed(error);
    for (const write of batch) write.reject(error);
  }

  function runBatch(batch: readonly Write[]): void {
    try {
      setSync(batch);
      start();
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
    told.wrote(batch.length);
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

export function closedError(path: string): TroupeError {
  return new TroupeError('store_unavailable', `${path}: the store is closed`, { path });
}
