import { type Database, getRow, insertRow } from './database.ts';

/** A conversation in the database. Changed inside writes only. */
export interface StoredLog {
  /** Its number, which never changes and is never reused. */
  readonly num: number;
  /** Seq and chain value of its last event; seq 0 without events. */
  seq: number;
  chain: string | null;
  /** The last event that addresses an agent, 0 if none does that it has not processed. Filled as agents are asked for. */
  readonly addressed: Map<string, number>;
}

/** Conversations of the database, with a cache of those used last, which `forget` clears (W5). Reads use it too (W4). */
export interface StoredLogs {
  /** Null if nothing was ever written for the conversation. */
  find(tenant: string, conversation: string): StoredLog | null;
  /** Inside a write only. */
  findOrCreate(tenant: string, conversation: string): StoredLog;
  /** Inside a write only: what is known of it no longer holds. */
  drop(tenant: string, conversation: string): void;
  /** A conversation created in an undone transaction is not in the database. */
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
