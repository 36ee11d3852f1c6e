import { newActorRow } from '../actor-row.ts';
import type {
  AcquireOutcome,
  ActorChange,
  ActorExpectation,
  ActorKey,
  ActorRow,
  StoreDriver,
} from '../driver.ts';
import type { Database } from './database.ts';
import { allRows, getRow, runStatement } from './database.ts';
import type { LogNumbers } from './log-numbers.ts';
import type { StoredText } from './stored-text.ts';
import { fromStored, toStored } from './stored-text.ts';

type StoredActor = Omit<ActorRow, 'tenant' | 'conversation' | 'outbox' | 'data'> & {
  num: number;
  log: number;
  outbox: number;
  data: StoredText;
};
type Found = { num: number; log: number; row: ActorRow };

const COLUMNS = 'fence, owner, until, processed, turn, cancel, parked, outbox, data';
const ADDRESS = 'logs.tenant AS tenant, logs.conversation AS conversation';

/** Read and write happen in one transaction (W1, W4), so a compare in JavaScript and an update by number are atomic. */
export function createActorTable(database: Database, logs: LogNumbers) {
  const select = database.prepare(
    `SELECT num, log, agent, ${COLUMNS} FROM actors WHERE log = ? AND agent = ?`,
  );
  const selectAll = database.prepare(
    `SELECT num, log, agent, ${COLUMNS} FROM actors WHERE log = ? ORDER BY agent`,
  );
  const insert = database.prepare(
    `INSERT INTO actors (log, agent, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = database.prepare(
    `UPDATE actors SET fence = ?, owner = ?, until = ?, processed = ?, turn = ?, cancel = ?, parked = ?, outbox = ?,
     data = ? WHERE num = ?`,
  );
  const settle = database.prepare('DELETE FROM pending WHERE log = ? AND agent = ? AND seq <= ?');
  const selectUnfinished = database.prepare(
    `SELECT ${ADDRESS}, agent FROM actors INDEXED BY actors_unfinished JOIN logs ON logs.num = log
     WHERE (turn IS NOT NULL OR outbox = 1) AND until < ? AND parked IS NULL LIMIT ?`,
  );
  const selectPending = database.prepare(
    `SELECT ${ADDRESS}, pending.agent AS agent FROM pending JOIN logs ON logs.num = pending.log
     LEFT JOIN actors ON actors.log = pending.log AND actors.agent = pending.agent
     WHERE pending.at >= ?
       AND (actors.num IS NULL OR (actors.until < ? AND actors.parked IS NULL AND actors.processed < pending.seq))
     ORDER BY pending.at LIMIT ?`,
  );

  function find(key: ActorKey): Found | null {
    const log = logs.find(key.tenant, key.conversation);
    const stored = log === null ? undefined : getRow<StoredActor>(select, log, key.agent);
    return stored ? found(key, stored) : null;
  }

  function valuesOf(row: ActorRow) {
    const { fence, owner, until, processed, turn, cancel, parked, outbox, data } = row;
    return [fence, owner, until, processed, turn, cancel, parked, outbox ? 1 : 0, toStored(data)] as const;
  }

  function save({ num }: Found, row: ActorRow): ActorRow {
    runStatement(update, ...valuesOf(row), num);
    return row;
  }

  function create(row: ActorRow): ActorRow {
    runStatement(insert, logs.findOrCreate(row.tenant, row.conversation), row.agent, ...valuesOf(row));
    return row;
  }

  function acquire(key: ActorKey, lease: { owner: string; now: number; until: number }): AcquireOutcome {
    const actor = find(key);
    const { owner, until } = lease;
    if (!actor) return { kind: 'acquired', row: create({ ...newActorRow(key), fence: 1, owner, until }) };
    if (actor.row.until >= lease.now) return { kind: 'busy', until: actor.row.until };
    return { kind: 'acquired', row: save(actor, { ...actor.row, fence: actor.row.fence + 1, owner, until }) };
  }

  function compareAndSet(key: ActorKey, expect: ActorExpectation, change: ActorChange): ActorRow | null {
    const actor = find(key);
    if (!actor || actor.row.fence !== expect.fence) return null;
    const { turn, cancel } = actor.row;
    if (expect.turn !== undefined && turn !== expect.turn) return null;
    if (expect.notCancelled && turn !== null && cancel === turn) return null;
    const row = save(actor, { ...actor.row, ...defined(change) });
    // `processed` never goes back, so what is settled here never becomes pending again.
    if (change.processed !== undefined) runStatement(settle, actor.log, key.agent, change.processed);
    return row;
  }

  function requestCancel(key: ActorKey, turn: string): boolean {
    const actor = find(key);
    if (!actor || actor.row.turn !== turn) return false;
    save(actor, { ...actor.row, cancel: turn });
    return true;
  }

  function park(key: ActorKey, parked: string | null): void {
    const actor = find(key);
    if (actor) save(actor, { ...actor.row, parked });
    else create({ ...newActorRow(key), parked });
  }

  function listActors(query: { tenant: string; conversation: string }): ActorRow[] {
    const log = logs.find(query.tenant, query.conversation);
    if (log === null) return [];
    return allRows<StoredActor>(selectAll, log).map((stored) => found(query, stored).row);
  }

  function due({ now, since, limit }: Parameters<StoreDriver['due']>[0]): ActorKey[] {
    const keys = new Map<string, ActorKey>();
    const unfinished = allRows<ActorKey>(selectUnfinished, now, limit);
    for (const { tenant, conversation, agent } of [
      ...unfinished,
      ...allRows<ActorKey>(selectPending, since, now, limit),
    ]) {
      keys.set(`${tenant}/${conversation}/${agent}`, { tenant, conversation, agent });
    }
    return [...keys.values()].slice(0, limit);
  }

  return {
    acquire,
    compareAndSet,
    requestCancel,
    park,
    readActor: (key: ActorKey) => find(key)?.row ?? null,
    listActors,
    due,
  };
}

function found(
  { tenant, conversation }: { tenant: string; conversation: string },
  stored: StoredActor,
): Found {
  const { num, log, agent, fence, owner, until, processed, turn, cancel, parked, outbox, data } = stored;
  const row = { tenant, conversation, agent, fence, owner, until, processed, turn, cancel, parked };
  return { num, log, row: { ...row, outbox: outbox === 1, data: fromStored(data) } };
}

/** A key that is present and undefined means "leave it", as an absent one does. */
function defined(change: ActorChange): ActorChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}
