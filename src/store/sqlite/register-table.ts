import type { KeyRange } from '../conversation-keys.ts';
import type { EntryKey, Namespace } from '../driver.ts';
import {
  allRows,
  type Database,
  fromStored,
  getRow,
  runStatement,
  type StoredText,
  toStored,
} from './database.ts';

/** Numbers are stored: never change one. Those up to 2 are indexed by age. */
const SHELVES: Record<Namespace, number> = {
  journal: 1,
  effect: 2,
  artifact: 3,
  prompt: 4,
  body: 5,
  meta: 6,
  note: 7,
};

export function createRegisterTable(database: Database) {
  const insert = database.prepare(
    'INSERT INTO registers (tenant, shelf, key, at, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const select = database.prepare('SELECT data FROM registers WHERE tenant = ? AND shelf = ? AND key = ?');
  const replace = database.prepare(
    'UPDATE registers SET data = ? WHERE tenant = ? AND shelf = ? AND key = ? AND data = ?',
  );
  const selectKeys = database.prepare(
    'SELECT key FROM registers WHERE tenant = ? AND shelf = ? AND key > ? AND key < ? ORDER BY key LIMIT ?',
  );
  const removeOne = database.prepare('DELETE FROM registers WHERE tenant = ? AND shelf = ? AND key = ?');
  const removeSome = database.prepare(removalOf('shelf = ?'));
  const removeSomeByAge = database.prepare(removalOf('shelf = ? AND shelf <= 2'));

  function readEntry({ tenant, shelf, key }: EntryKey): string | null {
    const row = getRow<{ data: StoredText }>(select, tenant, SHELVES[shelf], toStored(key));
    return row ? fromStored(row.data) : null;
  }

  function putOnce(register: EntryKey, data: string, at: number): { inserted: boolean; data: string } {
    const { tenant, shelf, key } = register;
    const inserted = runStatement(insert, tenant, SHELVES[shelf], toStored(key), at, toStored(data)) === 1;
    return { inserted, data: inserted ? data : readEntry(register)! };
  }

  function swap({ tenant, shelf, key }: EntryKey, from: string, to: string): boolean {
    return runStatement(replace, toStored(to), tenant, SHELVES[shelf], toStored(key), toStored(from)) === 1;
  }

  /** Removes at most `limit`; returns how many it removed. */
  function expireSome(shelf: Namespace, before: number, limit: number): number {
    const number = SHELVES[shelf];
    return runStatement(number <= 2 ? removeSomeByAge : removeSome, number, before, limit);
  }

  /** Keys of a shelf between two texts, ascending. */
  function keysBetween({ tenant, shelf, after, before, limit }: KeyRange): string[] {
    const rows = allRows<{ key: StoredText }>(selectKeys, tenant, SHELVES[shelf], after, before, limit);
    return rows.map(({ key }) => fromStored(key));
  }

  function remove({ tenant, shelf, key }: EntryKey): void {
    runStatement(removeOne, tenant, SHELVES[shelf], toStored(key));
  }

  return { readEntry, putOnce, swap, expireSome, keysBetween, remove };
}

function removalOf(ofShelf: string): string {
  return `DELETE FROM registers WHERE num IN (SELECT num FROM registers WHERE ${ofShelf} AND at < ? LIMIT ?)`;
}
