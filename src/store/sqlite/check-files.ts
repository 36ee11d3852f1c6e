import { statSync, closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { TroupeError } from '../../base/errors.ts';
import { allRows, type Database, getRow, openDatabase, sqliteError } from './database.ts';
import { refuseForeign, hasTables } from './schema.ts';
import { makePrivateFile } from '../../base/private-files.ts';

/** A database up to this size is checked each time it is opened, which takes some tenths of a second. */
const MAX_CHECKED_BYTES = 32 * 1024 * 1024;

/**
 * Checks a database without changing it. Must run before the database is opened for writing, because opening it for writing
 * and closing it merges and deletes the write-ahead log. Throws `store_corrupt`, `store_newer`.
 */
export function checkFiles(path: string): void {
  if (path === ':memory:') return;
  if (sizeOf(path) === 0) return checkNothing(path);
  const database = openDatabase(path, { readOnly: true });
  try {
    refuseForeign(database, path);
    // Runs before the check of all pages, because its message helps more.
    checkMark(database, path);
    checkPages(database, path);
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    database.close();
  }
}

/** Refuses an empty or missing file beside a write-ahead log or a mark. SQLite would start a new database and delete the log. */
function checkNothing(path: string): void {
  const wal = sizeOf(`${path}-wal`);
  if (wal > 0) {
    const message =
      `${path} is empty or missing, and ${path}-wal beside it holds ${wal} bytes that are useless without it. ` +
      'Put the database back, or restore both from one backup. To start with an empty store, remove both';
    throw new TroupeError('store_corrupt', message, { path, wal });
  }
  const marked = readMark(path);
  if (marked > 0) {
    const message =
      `${path} is empty or missing, and ${marked} events were acknowledged here. Put it back, or restore it from a ` +
      `backup. To start with an empty store, remove ${markPath(path)}`;
    throw new TroupeError('store_corrupt', message, { path, marked });
  }
}

function checkPages(database: Database, path: string): void {
  if (sizeOf(path) > MAX_CHECKED_BYTES) return;
  const found = getRow<{ quick_check: string }>(database.prepare('PRAGMA quick_check(1)'))?.quick_check;
  if (found === undefined || found === 'ok') return;
  const message = `${path} is damaged: ${found.trim()}. Restore it from a backup; "troupe doctor" shows more`;
  throw new TroupeError('store_corrupt', message, { path });
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const MAX_PROBLEMS = 10;

/** Describes damage that SQLite finds, and gaps in logs. Changes nothing. Throws `store_corrupt`. */
export function checkDatabase(path: string): string[] {
  checkFiles(path);
  const database = openDatabase(path);
  try {
    database.exec('PRAGMA query_only = ON');
    const rows = allRows<{ quick_check: string }>(database.prepare(`PRAGMA quick_check(${MAX_PROBLEMS})`));
    const problems = rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
    return [...problems, ...gaps(database)];
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    database.close();
  }
}

/** Describes missing events. A log is dense from 1, so a missing seq is a deleted event. */
function gaps(database: Database): string[] {
  const found = allRows<{ conversation: string; missing: number }>(
    database.prepare(
      `SELECT conversation, max(seq) - count(*) AS missing FROM events JOIN logs ON logs.num = log
       GROUP BY log HAVING missing <> 0 LIMIT ${MAX_PROBLEMS}`,
    ),
  );
  return found.map(({ conversation, missing }) => `conversation ${conversation} lacks ${missing} event(s)`);
}

/**
 * The mark: the row number of the last acknowledged event, in a file beside the database. SQLite accepts a missing write-ahead
 * log and an older copy of the database; the mark reveals both.
 *  K1  It is written after the commit and before the acknowledgement, so it is never ahead of the disk.
 *  K2  It is 0 (unknown) while events are removed. After that it is the number of the last remaining event.
 *  K3  It is an additional check. A mark that cannot be read or written causes no failure.
 */
interface LogMark {
  raise(num: number): void;
  /** Runs a removal of events, with the mark at 0 meanwhile. */
  whileRemoving<T>(remove: () => Promise<T>): Promise<T>;
  close(): void;
}

const DIGITS = 16;

function markPath(database: string): string {
  return `${database}-mark`;
}

function readMark(database: string): number {
  try {
    const text = readFileSync(markPath(database), 'latin1');
    return /^\d{16}\n$/.test(text) ? Number(text) : 0;
  } catch {
    // K3. Usually the file is missing.
    return 0;
  }
}

/** Row number of the last event. Requires the tables. */
function lastEvent(database: Database): number {
  const select = database.prepare('SELECT coalesce(max(num), 0) AS last FROM events');
  return getRow<{ last: number }>(select)!.last;
}

/** Throws `store_corrupt` if the last event comes before the mark. */
function checkMark(database: Database, path: string): void {
  const marked = readMark(path);
  // The tables of a new database are at first only in its write-ahead log, which may be missing.
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
      // K3: the earlier number stays in the file, and is not ahead of the disk (K1).
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
