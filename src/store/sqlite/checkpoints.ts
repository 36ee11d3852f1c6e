import { Worker } from 'node:worker_threads';

/**
 * Copies the write-ahead log into the database in a thread of its own. After some megabytes of writes that takes tens of
 * milliseconds, for which the event loop would stand still. Owns the thread, which begins with the first copy.
 *  1. It is a help, not a promise: SQLite still copies by itself what has come to `wal_autocheckpoint` pages.
 *  2. Nobody waits for it but `close`, which ends the thread before the database is closed: the last connection to be
 *     closed removes the log.
 */
export interface Checkpoints {
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
