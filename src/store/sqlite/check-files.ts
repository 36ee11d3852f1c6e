import { statSync } from 'node:fs';
import { TroupeError } from '../../base/errors.ts';
import { allRows, type Database, getRow, openDatabase } from './database.ts';
import { checkMark, markPath, readMark } from './log-mark.ts';
import { refuseForeign } from './schema.ts';
import { sqliteError } from './sqlite-error.ts';

/** A database up to this size is checked whenever it is opened, which takes some tenths of a second. */
const MAX_CHECKED_BYTES = 32 * 1024 * 1024;

/**
 * Checks a database without changing it. It runs before the database is opened for writing, because opening and closing
 * it for writing merges any write-ahead log and deletes it. Throws `store_corrupt`, `store_newer`.
 */
export function checkFiles(path: string): void {
  if (path === ':memory:') return;
  if (sizeOf(path) === 0) return checkNothing(path);
  const database = openDatabase(path, { readOnly: true });
  try {
    refuseForeign(database, path);
    // Before the check of all pages, because its message is more helpful.
    checkMark(database, path);
    checkPages(database, path);
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    database.close();
  }
}

/** SQLite would start a new database in an empty file and delete the write-ahead log beside it. */
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

/** Checks all pages of a small database. */
function checkPages(database: Database, path: string): void {
  if (sizeOf(path) > MAX_CHECKED_BYTES) return;
  const found = getRow<{ quick_check: string }>(database.prepare('PRAGMA quick_check(1)'))?.quick_check;
  if (found === undefined || found === 'ok') return;
  const message = `${path} is damaged: ${found.trim()}. Restore it from a backup; "troupe doctor" shows more`;
  throw new TroupeError('store_corrupt', message, { path });
}

/** 0 for a missing file. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const MAX_PROBLEMS = 10;

/** Problems of the file: damage that SQLite finds, and gaps in logs. Changes nothing. Throws `store_corrupt`. */
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

/** A log is dense from 1, so a missing seq is an event that was deleted. */
function gaps(database: Database): string[] {
  const found = allRows<{ conversation: string; missing: number }>(
    database.prepare(
      `SELECT conversation, max(seq) - count(*) AS missing FROM events JOIN logs ON logs.num = log
       GROUP BY log HAVING missing <> 0 LIMIT ${MAX_PROBLEMS}`,
    ),
  );
  return found.map(({ conversation, missing }) => `conversation ${conversation} lacks ${missing} event(s)`);
}
