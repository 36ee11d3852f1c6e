import { type Database, getRow, insertRow } from './database.ts';

/** A conversation in the database. May be changed inside writes only. */
export interface StoredLog {
  /** Its number, which never changes and is never reused. */
  readonly num: number;
  /** Seq and chain value of its last event; seq 0 without events. */
  seq: number;
  chain: string | null;
  /** By agent, the seq of the last event that addresses it, or 0 if it may have processed all of them. Filled on demand. */
  readonly addressed: Map<string, number>;
}

/** Conversations of the database, with a cache of those used last (W5). Reads use the cache too (W4). */
export interface StoredLogs {
  /** The conversation; null if nothing was ever written for it. */
  find(tenant: string, conversation: string): StoredLog | null;
  /** Inside a write only. */
  findOrCreate(tenant: string, conversation: string): StoredLog;
  /** Removes a conversation from the cache, because its cached values no longer hold. Inside a write only. */
  drop(tenant: string, conversation: string): void;
  /** Clears the cache, which may have a conversation whose transaction was rolled back. */
  forget(): void;
}

const MAX_CACHED = 20_000;

export function createStoredLogs(database: Database): StoredLogs {
  const select = database.prepare('SELECT num FROM logs WHERE tenant = ? AND conversation = ?');
  const selectEnd = database.prepare('SELECT seq, chain FROM events WHERE log = ? ORDER BY seq DESC LIMIT 1');
  const insert = database.prepare('INSERT INTO logs (tenant, conversation) VALUES (?, ?)');
  const cache = new Map<string, StoredLog>();

  function keep(key: string, log: StoredLog): StoredLog {
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(key, log);
    return log;
  }

  function find(tenant: string, conversation: string): StoredLog | null {
    const key = `${tenant}/${conversation}`;
    const known = cache.get(key);
    if (known) return known;
    const row = getRow<{ num: number }>(select, tenant, conversation);
    if (!row) return null;
    const end = getRow<{ seq: number; chain: string | null }>(selectEnd, row.num);
    return keep(key, {
      num: row.num,
      seq: end?.seq ?? 0,
      chain: end?.chain ?? null,
      addressed: new Map(),
    });
  }

  return {
    find,
    findOrCreate(tenant, conversation) {
      const found = find(tenant, conversation);
      if (found) return found;
      const num = insertRow(insert, tenant, conversation);
      return keep(`${tenant}/${conversation}`, { num, seq: 0, chain: null, addressed: new Map() });
    },
    drop: (tenant, conversation) => void cache.delete(`${tenant}/${conversation}`),
    forget: () => cache.clear(),
  };
}
