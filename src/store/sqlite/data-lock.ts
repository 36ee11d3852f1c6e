import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TroupeError } from '../../errors.ts';
import { closeToOthers, makePrivateDir, makePrivateFile } from '../../private-files.ts';
import { type Database, openDatabase, rollback } from './database.ts';
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
  /** What others may still open, in words; null: nothing. */
  exposed: string | null;
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
    makePrivateDir(dir);
  } catch (cause) {
    throw new TroupeError('data_unwritable', `${dir} cannot be made: ${String(cause)}`, { dir }, { cause });
  }
  makeLockFile(paths.lock);
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
  const exposed = closeData(dir);

  function release(): void {
    if (!held.delete(database)) return;
    removeServerInfo(dir);
    rollback(database);
    database.close();
  }
  return { paths, exposed, release, [Symbol.dispose]: release };
}

/** What is wrong with the place, SQLite says when it opens the file. */
function makeLockFile(path: string): void {
  try {
    makePrivateFile(path);
  } catch {
    // See above.
  }
}

/** What this program writes into the directory, by the beginnings of names. */
const OURS = /^(?:troupe\.db|lock\.db|server\.json|agents-used\.json|sessions$)/;

/**
 * Closes to others what is ours in the directory, and the directory itself if nothing else is in it: somebody may keep
 * data in a directory that has other uses. Returns what stays open to others.
 */
function closeData(dir: string): string | null {
  const names = readdirSync(dir);
  const open = names.filter((name) => OURS.test(name) && closeToOthers(join(dir, name)));
  if (open.length > 0) {
    return `others may open ${open.join(', ')} in ${dir}, which belong to another user: give the files to this one, or take their rights away`;
  }
  if (names.every((name) => OURS.test(name)) && closeToOthers(dir)) {
    return `others may look into ${dir}, which belongs to another user; the files in it are closed to them`;
  }
  return null;
}

function busy(dir: string, cause: TroupeError): TroupeError {
  const info = readServerInfo(dir);
  const who = info ? `process ${info.pid}, serving ${info.url}` : 'another process';
  const message = `${dir} is in use by ${who}; stop it or choose another directory`;
  return new TroupeError('data_busy', message, { dir, ...info }, { cause });
}
