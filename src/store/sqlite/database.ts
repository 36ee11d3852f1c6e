import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { makePrivateFile } from '../../base/private-files.ts';
import { sqliteError } from './sqlite-error.ts';

/** Only this module imports `node:sqlite`, whose names a later Node may change. */
export type Database = DatabaseSync;
export type Statement = StatementSync;

/** Types that bind safely: a plain object or a Date as first argument would silently bind NULL. */
export type Binding = string | number | null | Uint8Array;

/** Not imported: a Node without it could not load the check of its version. See `require-node.ts`. */
const sqlite = process.getBuiltinModule('node:sqlite');

/** How long SQLite may block this process while another one has the lock. */
const BUSY_TIMEOUT_MS = 250;

export function openDatabase(
  path: string,
  { timeout = BUSY_TIMEOUT_MS, readOnly = false }: { timeout?: number; readOnly?: boolean } = {},
): Database {
  try {
    return new sqlite.DatabaseSync(path, { timeout, readOnly });
  } catch (error) {
    throw sqliteError(error, path);
  }
}

/** Creates the file as a private one; SQLite gives the same rights to the files beside it. */
export function prepareFile(path: string): void {
  if (path === ':memory:') return;
  try {
    makePrivateFile(path);
  } catch {
    // SQLite reports the reason when it opens the file.
  }
}

export function getRow<T>(statement: Statement, ...bindings: Binding[]): T | undefined {
  return statement.get(...bindings) as T | undefined;
}

export function allRows<T>(
  statement: Statement,
  ...bindings: [named: Record<string, Binding>] | Binding[]
): T[] {
  return statement.all(...(bindings as Binding[])) as T[];
}

/** Rows one by one: rows after the last one consumed are not read. */
export function eachRow<T>(statement: Statement, ...bindings: Binding[]): Iterable<T> {
  return statement.iterate(...bindings) as Iterable<T>;
}

/** Returns the number of changed rows. */
export function runStatement(statement: Statement, ...bindings: Binding[]): number {
  return Number(statement.run(...bindings).changes);
}

/** Returns the number of the inserted row. */
export function insertRow(statement: Statement, ...bindings: Binding[]): number {
  return Number(statement.run(...bindings).lastInsertRowid);
}

/** Like `insertRow`; null if the row exists already. */
export function insertNew(statement: Statement, ...bindings: Binding[]): number | null {
  const { changes, lastInsertRowid } = statement.run(...bindings);
  return Number(changes) === 0 ? null : Number(lastInsertRowid);
}

/** SQLITE_CONSTRAINT_UNIQUE */
const NOT_UNIQUE = 2_067;

/** Returns the number of the last of the inserted rows; null if a unique key of one is taken: then none was inserted. */
export function insertAll(statement: Statement, ...bindings: Binding[]): number | null {
  try {
    return insertRow(statement, ...bindings);
  } catch (error) {
    if ((error as { errcode?: unknown }).errcode === NOT_UNIQUE) return null;
    throw error;
  }
}

/** Rolls back an open transaction, unless SQLite has already done so (as it does on a full disk). */
export function rollback(database: Database): void {
  if (!database.isTransaction) return;
  try {
    database.exec('ROLLBACK');
  } catch {
    // If the disk is gone, the next BEGIN fails and reports it.
  }
}

/**
 * SQLite stores text as UTF-8, which has no lone surrogates. Text with lone surrogates is stored as a blob of its UTF-16
 * units, all other text as text. A text has exactly one stored form, so stored values can be compared.
 */
export type StoredText = string | Uint8Array;

export function toStored(text: string): StoredText {
  return text.isWellFormed() ? text : Buffer.from(text, 'utf16le');
}

export function fromStored(stored: StoredText): string {
  if (typeof stored === 'string') return stored;
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('utf16le');
}
