import { checkFiles } from './check-files.ts';
import type { Database } from './database.ts';
import { allRows, openDatabase } from './database.ts';
import { sqliteError } from './sqlite-error.ts';

const MAX_PROBLEMS = 10;

/** What is wrong with the file: damage that SQLite finds, and gaps in a log. Nothing where it is well. Changes nothing. Throws `store_corrupt`. */
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

/** A log is dense from 1; a missing event is one that somebody took out. */
function gaps(database: Database): string[] {
  const found = allRows<{ conversation: string; missing: number }>(
    database.prepare(
      `SELECT conversation, max(seq) - count(*) AS missing FROM events JOIN logs ON logs.num = log
       GROUP BY log HAVING missing <> 0 LIMIT ${MAX_PROBLEMS}`,
    ),
  );
  return found.map(({ conversation, missing }) => `conversation ${conversation} lacks ${missing} event(s)`);
}
