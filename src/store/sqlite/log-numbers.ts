import type { Database } from './database.ts';
import { getRow } from './database.ts';

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
  const insert = database.prepare('INSERT INTO logs (tenant, conversation) VALUES (?, ?) RETURNING num');
  const cache = new Map<string, number>();

  function remember(key: string, row: { num: number } | undefined): number | null {
    if (!row) return null;
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(key, row.num);
    return row.num;
  }

  function find(tenant: string, conversation: string): number | null {
    const key = `${tenant}/${conversation}`;
    return cache.get(key) ?? remember(key, getRow(select, tenant, conversation));
  }

  return {
    find,
    findOrCreate(tenant, conversation) {
      const found = find(tenant, conversation);
      if (found !== null) return found;
      return remember(`${tenant}/${conversation}`, getRow(insert, tenant, conversation))!;
    },
    forget: () => cache.clear(),
  };
}
