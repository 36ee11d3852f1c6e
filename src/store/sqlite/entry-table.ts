import type { EntryKey, KeyRange, Namespace } from '../driver.ts';
import {
  allRows,
  type Database,
  fromStored,
  getRow,
  runStatement,
  type StoredText,
  toStored,
} from './database.ts';

/** Values of the column `namespace`, which must never change. Namespaces up to 2 are indexed by age. */
const NUMBERS: Record<Namespace, number> = {
  journal: 1,
  effect: 2,
  artifact: 3,
  prompt: 4,
  body: 5,
  meta: 6,
  note: 7,
  derived: 8,
};

export function createEntryTable(database: Database) {
  const insert = database.prepare(
    'INSERT INTO registers (tenant, namespace, key, at, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const select = database.prepare(
    'SELECT data FROM registers WHERE tenant = ? AND namespace = ? AND key = ?',
  );
  const replace = database.prepare(
    'UPDATE registers SET data = ? WHERE tenant = ? AND namespace = ? AND key = ? AND data = ?',
  );
  const selectKeys = database.prepare(
    'SELECT key FROM registers WHERE tenant = ? AND namespace = ? AND key > ? AND key < ? ORDER BY key LIMIT ?',
  );
  const removeOne = database.prepare('DELETE FROM registers WHERE tenant = ? AND namespace = ? AND key = ?');
  const removeSome = database.prepare(removalWhere('namespace = ?'));
  const removeSomeByAge = database.prepare(removalWhere('namespace = ? AND namespace <= 2'));

  function readEntry({ tenant, namespace, key }: EntryKey): string | null {
    const row = getRow<{ data: StoredText }>(select, tenant, NUMBERS[namespace], toStored(key));
    return row ? fromStored(row.data) : null;
  }

  function putOnce(entry: EntryKey, data: string, at: number): { inserted: boolean; data: string } {
    const { tenant, namespace, key } = entry;
    const inserted =
      runStatement(insert, tenant, NUMBERS[namespace], toStored(key), at, toStored(data)) === 1;
    return { inserted, data: inserted ? data : readEntry(entry)! };
  }

  function swap({ tenant, namespace, key }: EntryKey, from: string, to: string): boolean {
    return (
      runStatement(replace, toStored(to), tenant, NUMBERS[namespace], toStored(key), toStored(from)) === 1
    );
  }

  function expireSome(namespace: Namespace, before: number, limit: number): number {
    const number = NUMBERS[namespace];
    return runStatement(number <= 2 ? removeSomeByAge : removeSome, number, before, limit);
  }

  function keysBetween({ tenant, namespace, after, before, limit }: KeyRange): string[] {
    const rows = allRows<{ key: StoredText }>(selectKeys, tenant, NUMBERS[namespace], after, before, limit);
    return rows.map(({ key }) => fromStored(key));
  }

  function remove({ tenant, namespace, key }: EntryKey): void {
    runStatement(removeOne, tenant, NUMBERS[namespace], toStored(key));
  }

  return { readEntry, putOnce, swap, expireSome, keysBetween, remove };
}

function removalWhere(condition: string): string {
  return `DELETE FROM registers WHERE num IN (SELECT num FROM registers WHERE ${condition} AND at < ? LIMIT ?)`;
}
