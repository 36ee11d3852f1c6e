import { changedRow, newActorRow } from '../actor-row.ts';
import type { AcquireOutcome, ActorChange, ActorExpectation, ActorKey, ActorRow } from '../driver.ts';
import type { ActorRows } from './actor-rows.ts';
import type { Database } from './database.ts';
import { runStatement } from './database.ts';

/** Read and write happen in one transaction (W1, W4), so a compare in JavaScript and an update by number are atomic. */
export function createActorTable(database: Database, rows: ActorRows) {
  const settle = database.prepare('DELETE FROM pending WHERE log = ? AND agent = ? AND seq <= ?');

  function acquire(key: ActorKey, lease: { owner: string; now: number; until: number }): AcquireOutcome {
    const actor = rows.find(key);
    const { owner, until } = lease;
    if (!actor)
      return { kind: 'acquired', row: rows.create({ ...newActorRow(key), fence: 1, owner, until }) };
    const { row } = actor;
    if (row.until >= lease.now) return { kind: 'busy', until: row.until };
    return { kind: 'acquired', row: rows.save(actor, { ...row, fence: row.fence + 1, owner, until }) };
  }

  function compareAndSet(key: ActorKey, expect: ActorExpectation, change: ActorChange): ActorRow | null {
    const actor = rows.find(key);
    if (!actor || actor.row.fence !== expect.fence) return null;
    const { turn, cancel, processed } = actor.row;
    if (expect.turn !== undefined && turn !== expect.turn) return null;
    if (expect.notCancelled && turn !== null && cancel === turn) return null;
    const row = rows.save(actor, changedRow(actor.row, change));
    // `processed` never goes back, so what is settled here never becomes pending again.
    if (row.processed !== processed) runStatement(settle, actor.log, key.agent, row.processed);
    return row;
  }

  function requestCancel(key: ActorKey, turn: string): boolean {
    const actor = rows.find(key);
    if (!actor || actor.row.turn !== turn) return false;
    rows.save(actor, { ...actor.row, cancel: turn });
    return true;
  }

  function park(key: ActorKey, parked: string | null, expected?: string | null): boolean {
    const actor = rows.find(key);
    if (expected !== undefined && (actor?.row.parked ?? null) !== expected) return false;
    if (actor) rows.save(actor, { ...actor.row, parked });
    else rows.create({ ...newActorRow(key), parked });
    return true;
  }

  return { acquire, compareAndSet, requestCancel, park };
}
