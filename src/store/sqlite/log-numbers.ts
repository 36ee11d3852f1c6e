import type { Database } from './database.ts';
import { getRow, insertRow } from './database.ts';

/** The numbers by which conversations are named inside the database. A number never changes and is never reused. */
export interface LogNumbers {
  /** Null if nothing was ever written about the conversation. */
  find(tenant: string, conversation: string): number | null;
  /** Inside a write only. */
  findOrCreate(tenant: string, conversation: string): number;
  /** After an undone transaction: a number it gave is not in the database. */
  forget(): void;
}

const MAX_CACHED = 20_000;

export function createLogNumbers(database: Database): LogNumbers {
  const select = database.prepare('SELECT num FROM logs WHERE tenant = ? AND conversation = ?');
  const insert = database.prepare('INSERT INTO logs (tenant, conversation) VALUES (?, ?)');
  const cache = new Map<string, number>();

  function remember(key: string, num: number): number {
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(key, num);
    return num;
  }

  function find(tenant: string, conversation: string): number | null {
    const key = `${tenant}/${conversation}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const row = getRow<{ num: number }>(select, tenant, conversation);
    return row ? remember(key, row.num) : null;
  }

  return {
    find,
    findOrCreate(tenant, conversation) {
      const found = find(tenant, conversation);
      if (found !== null) return found;
      return remember(`${tenant}/${conversation}`, insertRow(insert, tenant, conversation));
    },
    forget: () => cache.clear(),
  };
}
