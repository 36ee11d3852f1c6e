import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { makePrivateFile } from '../../base/private-files.ts';
import { type ErrorCode, TroupeError } from '../../base/errors.ts';

/** Only this module uses `node:sqlite`, because a later Node may change its names. */
export type Database = DatabaseSync;
export type Statement = StatementSync;

/** Types that bind safely. A plain object or a Date as first argument would bind NULL without an error. */
export type Binding = string | number | null | Uint8Array;

/** Not imported, because a Node without it could then not run the check of its version. See `require-node.ts`. */
const sqlite = process.getBuiltinModule('node:sqlite');

/** How long SQLite may block this process while another process has the lock. */
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

/** Creates the file with private rights. SQLite gives the same rights to the files beside it. */
export function prepareFile(path: string): void {
  if (path === ':memory:') return;
  try {
    makePrivateFile(path);
  } catch {
    // SQLite reports the reason of the failure when it opens the file.
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

/** The rows one by one. Only the rows that the caller consumes are read. */
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

/** Like `insertRow`, but returns null if the row exists already. */
export function insertNew(statement: Statement, ...bindings: Binding[]): number | null {
  const { changes, lastInsertRowid } = statement.run(...bindings);
  return Number(changes) === 0 ? null : Number(lastInsertRowid);
}

/** Extended result code SQLITE_CONSTRAINT_UNIQUE. */
const NOT_UNIQUE = 2_067;

/** Returns the number of the last inserted row. Null if a unique key was taken; then no row was inserted. */
export function insertAll(statement: Statement, ...bindings: Binding[]): number | null {
  try {
    return insertRow(statement, ...bindings);
  } catch (error) {
    if ((error as { errcode?: unknown }).errcode === NOT_UNIQUE) return null;
    throw error;
  }
}

/** Rolls back an open transaction, unless SQLite has already done so, as on a full disk. */
export function rollback(database: Database): void {
  if (!database.isTransaction) return;
  try {
    database.exec('ROLLBACK');
  } catch {
    // If the disk is gone, the next BEGIN fails and reports that.
  }
}

/**
 * SQLite stores text as UTF-8, which has no lone surrogates. A text with lone surrogates is stored as a blob of its UTF-16
 * units, any other text as text. A text has exactly one stored form, so stored values can be compared.
 */
export type StoredText = string | Uint8Array;

export function toStored(text: string): StoredText {
  return text.isWellFormed() ? text : Buffer.from(text, 'utf16le');
}

export function fromStored(stored: StoredText): string {
  if (typeof stored === 'string') return stored;
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('utf16le');
}

/** Primary result codes of SQLite (https://sqlite.org/rescode.html) and their meaning for Troupe. */
const MEANINGS: Record<number, { code: ErrorCode; text: string }> = {
  // Statements are fixed, so one that does not match the tables means a damaged schema.
  1: { code: 'store_corrupt', text: 'its tables are not as Troupe made them; restore it from a backup' },
  5: { code: 'store_unavailable', text: 'another program holds the database; try again' },
  6: { code: 'store_unavailable', text: 'another program holds the database; try again' },
  7: { code: 'store_unavailable', text: 'out of memory' },
  8: {
    code: 'data_unwritable',
    text: 'the file or its directory is read-only; make both writable for this user',
  },
  10: { code: 'store_unavailable', text: 'the disk failed to read or write; check it' },
  11: { code: 'store_corrupt', text: 'the file is damaged; restore it from a backup' },
  13: {
    code: 'store_unavailable',
    text: 'the disk is full; nothing was written, free some space and try again',
  },
  14: {
    code: 'data_unwritable',
    text: 'the file cannot be opened; its directory must exist and be writable for this user',
  },
  18: { code: 'event_too_large', text: 'the text is too large to be stored' },
  23: { code: 'data_unwritable', text: 'access was denied' },
  26: { code: 'store_corrupt', text: 'the file is not a database' },
};

/** Converts an error of SQLite, with a code that says what the operator or the caller can do. */
export function sqliteError(thrown: unknown, path: string): TroupeError {
  if (thrown instanceof TroupeError) return thrown;
  const { errcode } = thrown as { errcode?: unknown };
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  // Extended codes keep the primary one in the low byte.
  const meaning = typeof errcode === 'number' ? MEANINGS[errcode & 0xff] : undefined;
  if (!meaning)
    return new TroupeError('internal', `sqlite, ${path}: ${detail}`, { path, errcode }, { cause: thrown });
  return new TroupeError(
    meaning.code,
    `${path}: ${meaning.text} (${detail})`,
    { path, errcode },
    { cause: thrown },
  );
}

/**
 * The last failure of the store. The first write that succeeds clears the failure of a full or failing disk. Damage stays
 * until the file is repaired and the process restarted.
 */
interface StoreTrouble {
  failed(error: TroupeError): void;
  wrote(): void;
  /** Throws the failure, if there is one. If it may be over, tries a write first, because otherwise none may ever come. */
  check(tryWrite: () => Promise<void>): Promise<void>;
}

const TROUBLES: readonly ErrorCode[] = ['store_unavailable', 'store_corrupt', 'data_unwritable'];

export function createStoreTrouble(onWarning: (error: unknown, where: string) => void): StoreTrouble {
  let trouble: TroupeError | null = null;

  return {
    failed(error) {
      if (!TROUBLES.includes(error.code) || trouble?.code === 'store_corrupt') return;
      if (trouble?.code !== error.code) onWarning(error, 'store');
      trouble = error;
    },
    wrote() {
      if (!trouble || trouble.code === 'store_corrupt') return;
      trouble = null;
      onWarning('the store can be written again', 'store');
    },
    async check(tryWrite) {
      // A failure of the trial write was already reported through `failed`.
      if (trouble && trouble.code !== 'store_corrupt') await tryWrite().catch(() => {});
      if (trouble) throw trouble;
    },
  };
}
