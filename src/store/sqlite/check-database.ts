import { allRows, openDatabase } from './database.ts';
import { sqliteError } from './sqlite-error.ts';

const MAX_PROBLEMS = 10;

/** What SQLite finds wrong with the file; nothing where it is well. Changes nothing. Throws `store_corrupt`. */
export function checkDatabase(path: string): string[] {
  const database = openDatabase(path);
  try {
    database.exec('PRAGMA query_only = ON');
    const rows = allRows<{ quick_check: string }>(database.prepare(`PRAGMA quick_check(${MAX_PROBLEMS})`));
    return rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    database.close();
  }
}
