import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import { closeToOthers, makePrivateDir } from '../../base/private-files.ts';
import { type Database, openDatabase, prepareFile, rollback, sqliteError } from './database.ts';

/** Paths in a data directory. */
interface DataPaths {
  /** The data directory. */
  dir: string;
  /** The file of the store. */
  database: string;
  /** The file of the lock. */
  lock: string;
}

export function dataPaths(dir: string): DataPaths {
  return { dir, database: join(dir, 'troupe.db'), lock: join(dir, 'lock.db') };
}

/** Exclusive ownership of a data directory by this process. */
export interface DataLock {
  /** Paths in the locked directory. */
  paths: DataPaths;
  /** Describes the files that other users of the machine can still open; null if there are none. */
  exposed: string | null;
  /** Releases the lock. */
  release(): void;
  [Symbol.dispose](): void;
}

/** Keeps the connections reachable, because a garbage-collected connection would release its lock. */
const held = new Set<Database>();

/**
 * Locks the directory, and creates it if missing. The lock is an open exclusive transaction on a separate file. The operating
 * system releases it when the process ends in any way, so there are no stale locks.
 */
export function lockDataDir(dir: string): DataLock {
  const paths = dataPaths(dir);
  try {
    makePrivateDir(dir);
  } catch (cause) {
    throw new TroupeError('data_unwritable', `cannot create ${dir}: ${String(cause)}`, { dir }, { cause });
  }
  prepareFile(paths.lock);
  const database = openDatabase(paths.lock, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
  } catch (thrown) {
    database.close();
    const error = sqliteError(thrown, paths.lock);
    throw error.code === 'store_unavailable' ? busy(dir, error) : error;
  }
  held.add(database);
  // This process has the lock, so the file was left by a process that has ended.
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

/** Prefixes of the names of Troupe's files. */
const OURS = /^(?:troupe\.db|lock\.db|server\.json|agents-used\.json|sessions$)/;

/**
 * Makes Troupe's files in the directory private, and the directory too if it has no other files. Describes what stays open to
 * other users; null if nothing.
 */
function closeData(dir: string): string | null {
  const names = readdirSync(dir);
  const open = names.filter((name) => OURS.test(name) && closeToOthers(join(dir, name)));
  if (open.length > 0) {
    return `other users may open ${open.join(', ')} in ${dir}, which another user owns: make this user the owner, or restrict the permissions`;
  }
  if (names.every((name) => OURS.test(name)) && closeToOthers(dir)) {
    return `other users may list ${dir}, which another user owns; its files are closed to them`;
  }
  return null;
}

function busy(dir: string, cause: TroupeError): TroupeError {
  const info = readServerInfo(dir);
  const who = info ? `process ${info.pid}, serving ${info.url}` : 'another process';
  const message = `${dir} is in use by ${who}; stop it or choose another directory`;
  return new TroupeError('data_busy', message, { dir, ...info }, { cause });
}

/** Lets other programs find the process that owns a data directory. A hint, because only the lock proves that it runs. */
interface ServerInfo {
  pid: number;
  url: string;
}

export function writeServerInfo(dir: string, info: ServerInfo): void {
  const path = pathIn(dir);
  // The complete file is renamed into place, so that a reader never sees a part of it.
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(info)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

export function readServerInfo(dir: string): ServerInfo | null {
  try {
    const { pid, url } = JSON.parse(readFileSync(pathIn(dir), 'utf8')) as Partial<ServerInfo>;
    return typeof pid === 'number' && typeof url === 'string' ? { pid, url } : null;
  } catch {
    // A missing or unreadable file tells nothing.
    return null;
  }
}

function removeServerInfo(dir: string): void {
  rmSync(pathIn(dir), { force: true });
}

function pathIn(dir: string): string {
  return join(dir, 'server.json');
}
