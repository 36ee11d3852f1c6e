import type { ActorKey, ActorRow } from '../driver.ts';
import type { Database } from './database.ts';
import { allRows, getRow, insertRow, runStatement } from './database.ts';
import type { LogNumbers } from './log-numbers.ts';
import type { StoredText } from './stored-text.ts';
import { fromStored, toStored } from './stored-text.ts';

type StoredActor = Omit<ActorRow, 'tenant' | 'conversation' | 'outbox' | 'data'> & {
  num: number;
  outbox: number;
  data: StoredText;
};

/** Rows are shared with callers and never changed in place. */
export interface Found {
  readonly num: number;
  readonly log: number;
  readonly row: Readonly<ActorRow>;
}

const COLUMNS = 'fence, owner, until, processed, turn, cancel, parked, outbox, wakeAt, data';

/** Bound what the cache holds: rows, and characters of a row's data. */
const MAX_CACHED = 1_024;
const MAX_CACHED_DATA = 8_192;

/**
 * Rows of actors, with a cache of those written last: an actor at work is written five times in a row, and its data
 * is long. The cache serves writes only, so that a read never sees what is not committed (W4, W5).
 */
export function createActorRows(database: Database, logs: LogNumbers) {
  const select = database.prepare(`SELECT num, agent, ${COLUMNS} FROM actors WHERE log = ? AND agent = ?`);
  const selectAll = database.prepare(
    `SELECT num, agent, ${COLUMNS} FROM actors WHERE log = ? ORDER BY agent`,
  );
  const insert = database.prepare(
    `INSERT INTO actors (log, agent, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = database.prepare(
    `UPDATE actors SET fence = ?, owner = ?, until = ?, processed = ?, turn = ?, cancel = ?, parked = ?, outbox = ?,
     wakeAt = ?, data = ? WHERE num = ?`,
  );
  const updateLease = database.prepare('UPDATE actors SET fence = ?, owner = ?, until = ? WHERE num = ?');
  const removeAll = database.prepare('DELETE FROM actors WHERE log = ?');
  const cache = new Map<string, Found>();

  function read(key: ActorKey): Found | null {
    const log = logs.find(key.tenant, key.conversation);
    const stored = log === null ? undefined : getRow<StoredActor>(select, log, key.agent);
    return stored ? { num: stored.num, log: log!, row: actorRow(key, stored) } : null;
  }

  function remember(found: Found): ActorRow {
    const name = nameOf(found.row);
    if (found.row.data.length > MAX_CACHED_DATA) {
      cache.delete(name);
      return found.row;
    }
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(name, found);
    return found.row;
  }

  return {
    read: (key: ActorKey): ActorRow | null => read(key)?.row ?? null,

    list({ tenant, conversation }: { tenant: string; conversation: string }): ActorRow[] {
      const log = logs.find(tenant, conversation);
      if (log === null) return [];
      return allRows<StoredActor>(selectAll, log).map((stored) =>
        actorRow({ tenant, conversation, agent: stored.agent }, stored),
      );
    },

    /** Inside a write only, as all below. */
    find: (key: ActorKey): Found | null => cache.get(nameOf(key)) ?? read(key),

    save({ num, log, row: before }: Found, row: ActorRow): ActorRow {
      if (onlyLeaseDiffers(before, row)) runStatement(updateLease, row.fence, row.owner, row.until, num);
      else runStatement(update, ...valuesOf(row), num);
      return remember({ num, log, row });
    },

    create(row: ActorRow): ActorRow {
      const log = logs.findOrCreate(row.tenant, row.conversation);
      const num = insertRow(insert, log, row.agent, ...valuesOf(row));
      return remember({ num, log, row });
    },

    /** All of a conversation; returns how many. */
    remove({ tenant, conversation }: { tenant: string; conversation: string }): number {
      const log = logs.find(tenant, conversation);
      if (log === null) return 0;
      cache.clear();
      return runStatement(removeAll, log);
    },

    forget: () => cache.clear(),
  };
}
export type ActorRows = ReturnType<typeof createActorRows>;

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}

function valuesOf(row: ActorRow) {
  const { fence, owner, until, processed, turn, cancel, parked, outbox, wakeAt, data } = row;
  const columns = [fence, owner, until, processed, turn, cancel, parked, outbox ? 1 : 0, wakeAt] as const;
  return [...columns, toStored(data)] as const;
}

/** Most writes of a lease leave the data alone, which is a thousand times as long. */
function onlyLeaseDiffers(before: ActorRow, after: ActorRow): boolean {
  return (
    before.data === after.data &&
    before.processed === after.processed &&
    before.turn === after.turn &&
    before.cancel === after.cancel &&
    before.parked === after.parked &&
    before.outbox === after.outbox &&
    before.wakeAt === after.wakeAt
  );
}

function actorRow({ tenant, conversation, agent }: ActorKey, stored: StoredActor): ActorRow {
  const { fence, owner, until, processed, turn, cancel, parked, outbox, wakeAt, data } = stored;
  const address = { tenant, conversation, agent };
  const columns = { fence, owner, until, processed, turn, cancel, parked, wakeAt };
  return { ...address, ...columns, outbox: outbox === 1, data: fromStored(data) };
}
