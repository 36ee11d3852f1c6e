import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { TroupeError } from '../../base/errors.ts';
import { makePrivateFile } from '../../base/private-files.ts';
import { type Database, getRow } from './database.ts';
import { hasTables } from './schema.ts';

/**
 * The number of the last acknowledged event, in a file beside the database. SQLite accepts a missing write-ahead log and
 * an older copy of the database; this number reveals both.
 *  K1  It is written after the commit and before the acknowledgement, so it is never ahead of the disk.
 *  K2  It is 0, unknown, while events are removed, and begins again with the remaining events.
 *  K3  It is an additional check: a mark that cannot be read or written causes no failure.
 */
export interface LogMark {
  /** Reports that the event with this number is committed; 0 if none was. */
  raise(num: number): void;
  /** Runs a removal of events. */
  whileRemoving<T>(remove: () => Promise<T>): Promise<T>;
  close(): void;
}

const DIGITS = 16;

export function markPath(database: string): string {
  return `${database}-mark`;
}

/** 0 if unknown. */
export function readMark(database: string): number {
  try {
    const text = readFileSync(markPath(database), 'latin1');
    return /^\d{16}\n$/.test(text) ? Number(text) : 0;
  } catch {
    // K3; usually the file is missing.
    return 0;
  }
}

/** Requires the tables. */
function lastEvent(database: Database): number {
  const select = database.prepare('SELECT coalesce(max(num), 0) AS last FROM events');
  return getRow<{ last: number }>(select)!.last;
}

/** Throws `store_corrupt` if the log ends before the mark. */
export function checkMark(database: Database, path: string): void {
  const marked = readMark(path);
  // The tables of a new database may still be only in its write-ahead log.
  const last = hasTables(database) ? lastEvent(database) : 0;
  if (last < marked) throw endsEarly(path, last, marked);
}

export function openLogMark(database: Database, path: string): LogMark {
  let known = lastEvent(database);
  let file = openMark(path);
  let removals = 0;
  write(known);

  function write(num: number): void {
    if (file === null) return;
    try {
      writeSync(file, `${String(num).padStart(DIGITS, '0')}\n`, 0, 'latin1');
    } catch {
      // K3: the earlier number stays, and is not ahead of the disk (K1).
      close();
    }
  }

  function close(): void {
    if (file !== null) closeSync(file);
    file = null;
  }

  return {
    raise(num) {
      if (num <= known || removals > 0) return;
      known = num;
      write(num);
    },
    async whileRemoving(remove) {
      if (removals === 0) write(0);
      removals += 1;
      try {
        return await remove();
      } finally {
        removals -= 1;
        if (removals === 0 && database.isOpen) write((known = lastEvent(database)));
      }
    },
    close,
  };
}

function openMark(path: string): number | null {
  if (path === ':memory:') return null;
  try {
    makePrivateFile(markPath(path));
    return openSync(markPath(path), 'r+');
  } catch {
    // K3
    return null;
  }
}

function endsEarly(path: string, last: number, marked: number): TroupeError {
  return new TroupeError(
    'store_corrupt',
    `${path}: the log ends at event ${last} and ${marked} were acknowledged: ${path}-wal is missing or is not the one of ` +
      'this database, or the database is an older copy. Nothing was changed. Put the missing file back, or restore both ' +
      `from one backup. To go on without these events, remove ${markPath(path)}`,
    { path, last, marked },
  );
}
