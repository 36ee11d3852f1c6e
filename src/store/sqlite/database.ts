import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { sqliteError } from './sqlite-error.ts';

/** The only module that knows `node:sqlite`, whose names a later Node may change. */
export type Database = DatabaseSync;
export type Statement = StatementSync;

/** What binds without surprises: a plain object or a Date as first argument would silently bind NULL. */
export type Binding = string | number | null | Uint8Array;

/** How long SQLite may block this process for another one's lock. */
const BUSY_TIMEOUT_MS = 250;

export function openDatabase(
  path: string,
  { timeout = BUSY_TIMEOUT_MS, readOnly = false }: { timeout?: number; readOnly?: boolean } = {},
): Database {
  try {
    return new DatabaseSync(path, { timeout, readOnly });
  } catch (error) {
    throw sqliteError(error, path);
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

/** One row after the other. The rows behind the last one taken are not read. */
export function eachRow<T>(statement: Statement, ...bindings: Binding[]): Iterable<T> {
  return statement.iterate(...bindings) as Iterable<T>;
}

/** How many rows the statement changed. */
export function runStatement(statement: Statement, ...bindings: Binding[]): number {
  return Number(statement.run(...bindings).changes);
}

/** The number of the row it inserted. */
export function insertRow(statement: Statement, ...bindings: Binding[]): number {
  return Number(statement.run(...bindings).lastInsertRowid);
}

/** The same where the row may be there already: then null. */
export function insertNew(statement: Statement, ...bindings: Binding[]): number | null {
  const { changes, lastInsertRowid } = statement.run(...bindings);
  return Number(changes) === 0 ? null : Number(lastInsertRowid);
}

/** Undoes an open transaction, if SQLite has not done so by itself (it does on a full disk). */
export function rollback(database: Database): void {
  if (!database.isTransaction) return;
  try {
    database.exec('ROLLBACK');
  } catch {
    // The disk may be gone. The next BEGIN then fails and is reported to its caller.
  }
}

/**
 * SQLite keeps text as UTF-8, which has no lone surrogates. Text that has them is stored as a blob of its UTF-16
 * units; all other text as text. One text has one stored form, so stored values can be compared.
 */
export type StoredText = string | Uint8Array;

export function toStored(text: string): StoredText {
  return text.isWellFormed() ? text : Buffer.from(text, 'utf16le');
}

export function fromStored(stored: StoredText): string {
  if (typeof stored === 'string') return stored;
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('utf16le');
}
