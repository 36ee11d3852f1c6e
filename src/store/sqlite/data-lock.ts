import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TroupeError } from '../../errors.ts';
import type { Database } from './database.ts';
import { openDatabase, rollback } from './database.ts';
import { readServerInfo, removeServerInfo } from './server-info.ts';
import { sqliteError } from './sqlite-error.ts';

/** Where things are in a data directory. */
export interface DataPaths {
  dir: string;
  database: string;
  lock: string;
}

export function dataPaths(dir: string): DataPaths {
  return { dir, database: join(dir, 'troupe.db'), lock: join(dir, 'lock.db') };
}

/** Sole ownership of a data directory by this process. */
export interface DataLock {
  paths: DataPaths;
  release(): void;
  [Symbol.dispose](): void;
}

/** Keeps the connections reachable: one that is garbage-collected would let go of its lock. */
const held = new Set<Database>();

/**
 * Takes the directory, making it if there is none. The lock is an open exclusive transaction on a file of its own:
 * the operating system ends it with the process, however that dies, so there is no stale lock to clean up.
 */
export function lockDataDir(dir: string): DataLock {
  const paths = dataPaths(dir);
  try {
    mkdirSync(dir, { recursive: true });
  } catch (cause) {
    throw new TroupeError('data_unwritable', `${dir} cannot be made: ${String(cause)}`, { dir }, { cause });
  }
  const database = openDatabase(paths.lock, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
  } catch (thrown) {
    database.close();
    const error = sqliteError(thrown, paths.lock);
    throw error.code === 'store_unavailable' ? busy(dir, error) : error;
  }
  held.add(database);
  // Whoever wrote it is gone.
  removeServerInfo(dir);

  function release(): void {
    if (!held.delete(database)) return;
    removeServerInfo(dir);
    rollback(database);
    database.close();
  }
  return { paths, release, [Symbol.dispose]: release };
}

function busy(dir: string, cause: TroupeError): TroupeError {
  const info = readServerInfo(dir);
  const who = info ? `process ${info.pid}, serving ${info.url}` : 'another process';
  const message = `${dir} is in use by ${who}; stop it or choose another directory`;
  return new TroupeError('data_busy', message, { dir, ...info }, { cause });
}
