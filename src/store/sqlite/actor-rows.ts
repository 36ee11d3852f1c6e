import type {
  AcquireOutcome,
  ActorChange,
  ActorExpectation,
  ActorKey,
  ActorRow,
  StoreDriver,
} from '../driver.ts';
import {
  allRows,
  type Database,
  fromStored,
  getRow,
  insertRow,
  runStatement,
  type StoredText,
  toStored,
} from './database.ts';
import type { StoredLogs } from './stored-logs.ts';
import { changedRow, newActorRow } from '../actor-row.ts';

type StoredActor = Omit<ActorRow, 'tenant' | 'conversation' | 'outbox' | 'data'> & {
  num: number;
  data: StoredText;
};

/** A row with its number in the database. Rows are shared with callers, so they are never changed in place. */
interface Found {
  readonly num: number;
  readonly row: Readonly<ActorRow>;
}

const COLUMNS = 'fence, owner, until, processed, turn, abort, parked, wakeAt, data';

/** Bounds of the cache: the number of rows, and the characters of data of each. */
const MAX_CACHED = 1_024;
const MAX_CACHED_DATA = 8_192;

/**
 * Rows of actors, with a cache of those written last, because a running actor is written several times in succession and its
 * data is long. Only writes use the cache, so a read never sees uncommitted rows (W4, W5).
 */
export function createActorRows(database: Database, logs: StoredLogs) {
  const select = database.prepare(`SELECT num, agent, ${COLUMNS} FROM actors WHERE log = ? AND agent = ?`);
  const selectAll = database.prepare(
    `SELECT num, agent, ${COLUMNS} FROM actors WHERE log = ? ORDER BY agent`,
  );
  const insert = database.prepare(
    `INSERT INTO actors (log, agent, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = database.prepare(
    `UPDATE actors SET fence = ?, owner = ?, until = ?, processed = ?, turn = ?, abort = ?, parked = ?,
     wakeAt = ?, data = ? WHERE num = ?`,
  );
  const updateLease = database.prepare('UPDATE actors SET fence = ?, owner = ?, until = ? WHERE num = ?');
  const removeAll = database.prepare('DELETE FROM actors WHERE log = ?');
  const cache = new Map<string, Found>();

  function read(key: ActorKey): Found | null {
    const log = logs.find(key.tenant, key.conversation);
    const stored = log === null ? undefined : getRow<StoredActor>(select, log.num, key.agent);
    return stored ? { num: stored.num, row: actorRow(key, stored) } : null;
  }

  function keep(found: Found): ActorRow {
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
      return allRows<StoredActor>(selectAll, log.num).map((stored) =>
        actorRow({ tenant, conversation, agent: stored.agent }, stored),
      );
    },

    /** To be called inside a write only, like all methods below. */
    find: (key: ActorKey): Found | null => cache.get(nameOf(key)) ?? read(key),

    save({ num, row: before }: Found, row: ActorRow): ActorRow {
      if (onlyLeaseDiffers(before, row)) runStatement(updateLease, row.fence, row.owner, row.until, num);
      else runStatement(update, ...valuesOf(row), num);
      return keep({ num, row });
    },

    create(row: ActorRow): ActorRow {
      const log = logs.findOrCreate(row.tenant, row.conversation);
      const num = insertRow(insert, log.num, row.agent, ...valuesOf(row));
      return keep({ num, row });
    },

    remove({ tenant, conversation }: { tenant: string; conversation: string }): number {
      const log = logs.find(tenant, conversation);
      if (log === null) return 0;
      cache.clear();
      return runStatement(removeAll, log.num);
    },

    forget: () => cache.clear(),
  };
}
type ActorRows = ReturnType<typeof createActorRows>;

function holds(
  row: ActorRow,
  { fence, turn, notAborted, freeAt, processed = row.processed }: ActorExpectation,
): boolean {
  if (row.fence !== fence || row.processed !== processed || (turn !== undefined && row.turn !== turn))
    return false;
  if (notAborted && row.turn !== null && row.abort === row.turn) return false;
  return freeAt === undefined || (row.until < freeAt && row.parked === null);
}

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}

function valuesOf(row: ActorRow) {
  const { fence, owner, until, processed, turn, abort, parked, wakeAt, data } = row;
  const columns = [fence, owner, until, processed, turn, abort, parked, wakeAt] as const;
  return [...columns, toStored(data)] as const;
}

/** Most writes change only the lease, so they need not write the data, which is a thousand times as long. */
function onlyLeaseDiffers(before: ActorRow, after: ActorRow): boolean {
  return (
    before.data === after.data &&
    before.processed === after.processed &&
    before.turn === after.turn &&
    before.abort === after.abort &&
    before.parked === after.parked &&
    before.wakeAt === after.wakeAt
  );
}

function actorRow({ tenant, conversation, agent }: ActorKey, stored: StoredActor): ActorRow {
  const { fence, owner, until, processed, turn, abort, parked, wakeAt, data } = stored;
  const address = { tenant, conversation, agent };
  const columns = { fence, owner, until, processed, turn, abort, parked, wakeAt };
  // A step is one transaction here, so no committed event is ever missing in the log.
  return { ...address, ...columns, outbox: false, data: fromStored(data) };
}

/**
 * Actors with work, each once: first those with a pinned turn or an ended timer, then those addressed by events.
 * Agent ids alternate, oldest work first within each, so that work for an agent that no process serves delays no other.
 */
export function createDueQuery(database: Database) {
  const select = database.prepare(
    `WITH due AS (
       SELECT log, agent, -1 AS at FROM actors INDEXED BY actors_unfinished
       WHERE turn IS NOT NULL AND until < :now AND parked IS NULL
       UNION ALL
       SELECT log, agent, -1 AS at FROM actors INDEXED BY actors_timed
       WHERE wakeAt <= :clock AND until < :now AND parked IS NULL AND turn IS NULL
       UNION ALL
       SELECT pending.log, pending.agent, pending.at FROM pending
       LEFT JOIN actors ON actors.log = pending.log AND actors.agent = pending.agent
       WHERE pending.at >= :since AND (actors.num IS NULL OR (
         actors.until < :now AND actors.parked IS NULL AND actors.processed < pending.seq
         AND actors.turn IS NULL
         AND (actors.wakeAt IS NULL OR actors.wakeAt > :clock)))
     ),
     ranked AS (
       SELECT log, agent, at, row_number() OVER (PARTITION BY agent ORDER BY at) AS place FROM due
       ORDER BY place, at LIMIT :limit
     )
     SELECT tenant, conversation, agent FROM ranked JOIN logs ON logs.num = log ORDER BY place, at`,
  );

  // Copied, because `node:sqlite` returns rows without a prototype.
  return ({ now, clock, since, limit }: Parameters<StoreDriver['due']>[0]): ActorKey[] =>
    allRows<ActorKey>(select, { now, clock, since, limit }).map((row) => ({ ...row }));
}

/** Removes at most `limit` rows of `pending` that their actors have processed. Returns their number. Inside a write only. */
export function createSettle(database: Database) {
  // `processed` never decreases, so a processed event never becomes pending again.
  const remove = database.prepare(
    `DELETE FROM pending WHERE (log, agent) IN (
       SELECT log, agent FROM pending JOIN actors USING (log, agent) WHERE processed >= pending.seq LIMIT ?)`,
  );
  return (limit: number): number => runStatement(remove, limit);
}

/** Each method runs in one transaction (W1, W4), so its comparison in JavaScript and its update are atomic. */
export function createActorTable(rows: ActorRows) {
  function acquire(key: ActorKey, lease: { owner: string; now: number; until: number }): AcquireOutcome {
    const actor = rows.find(key);
    const { owner, until } = lease;
    if (!actor)
      return { kind: 'acquired', row: rows.create({ ...newActorRow(key), fence: 1, owner, until }) };
    const { row } = actor;
    if (row.until >= lease.now) return { kind: 'busy', until: row.until };
    return { kind: 'acquired', row: rows.save(actor, { ...row, fence: row.fence + 1, owner, until }) };
  }

  function expecting(key: ActorKey, expect: ActorExpectation): Found | null {
    const actor = rows.find(key);
    return actor && holds(actor.row, expect) ? actor : null;
  }

  function change(actor: Found, { takes, ...to }: ActorChange & { takes?: true | undefined }): ActorRow {
    const row = changedRow(actor.row, to);
    if (takes) row.fence += 1;
    return rows.save(actor, row);
  }

  function compareAndSet(key: ActorKey, expect: ActorExpectation, to: ActorChange): ActorRow | null {
    const actor = expecting(key, expect);
    return actor && change(actor, to);
  }

  function requestAbort(key: ActorKey, turn: string): boolean {
    const actor = rows.find(key);
    if (!actor || actor.row.turn !== turn) return false;
    rows.save(actor, { ...actor.row, abort: turn });
    return true;
  }

  function park(key: ActorKey, parked: string | null, expected?: string | null): boolean {
    const actor = rows.find(key);
    if (expected !== undefined && (actor?.row.parked ?? null) !== expected) return false;
    if (actor) rows.save(actor, { ...actor.row, parked });
    else rows.create({ ...newActorRow(key), parked });
    return true;
  }

  return { acquire, expecting, change, compareAndSet, requestAbort, park };
}
