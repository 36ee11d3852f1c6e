import type { AppendOutcome, EventRow, NewEventRow, StoreDriver } from '../driver.ts';
import type { Database } from './database.ts';
import { allRows, eachRow, getRow, insertNew, runStatement } from './database.ts';
import type { LogNumbers } from './log-numbers.ts';
import type { StoredText } from './stored-text.ts';
import { fromStored, toStored } from './stored-text.ts';

type Query<K extends keyof StoreDriver> = Parameters<StoreDriver[K]>[0];

type StoredEvent = Omit<EventRow, 'tenant' | 'conversation' | 'to' | 'data'> & {
  recipients: string;
  data: StoredText;
};

/** Bounds what is remembered. */
const MAX_HEADS = 20_000;

const COLUMNS = 'seq, id, at, kind, recipients, hash, tokens, turn, data';

export function createEventTable(database: Database, logs: LogNumbers) {
  const insert = database.prepare(
    `INSERT INTO events (log, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (log, id) DO NOTHING`,
  );
  const insertAddressed = database.prepare(
    'INSERT OR IGNORE INTO addressed (log, agent, seq) VALUES (?, ?, ?)',
  );
  const insertPending = database.prepare(
    `INSERT INTO pending (log, agent, seq, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (log, agent) DO UPDATE SET seq = excluded.seq, at = max(at, excluded.at)`,
  );
  const selectDuplicate = database.prepare('SELECT seq, hash FROM events WHERE log = ? AND id = ?');
  const selectRange = database.prepare(
    `SELECT ${COLUMNS} FROM events WHERE log = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
  );
  const selectById = database.prepare(`SELECT ${COLUMNS} FROM events WHERE log = ? AND id = ?`);
  const selectHead = database.prepare('SELECT coalesce(max(seq), 0) AS head FROM events WHERE log = ?');
  const selectAddressed = database.prepare(
    'SELECT seq FROM addressed WHERE log = ? AND agent = ? AND seq > ? AND seq <= ? ORDER BY seq',
  );
  const updateLog = database.prepare('UPDATE logs SET lastSeq = ?, lastAt = ? WHERE num = ?');
  const selectLast = database.prepare(
    'SELECT seq AS head, at FROM events WHERE log = ? ORDER BY seq DESC LIMIT 1',
  );

  const removeAddressed = database.prepare('DELETE FROM addressed WHERE log = ?');
  const removePending = database.prepare('DELETE FROM pending WHERE log = ?');
  const removeAfter = database.prepare('DELETE FROM events WHERE log = ? AND seq > ?');

  /** Last seqs. The file has one owner, so they serve reads as well (W4, W5). */
  const heads = new Map<number, number>();

  function headOf(log: number): number {
    return heads.get(log) ?? setHead(log, getRow<{ head: number }>(selectHead, log)!.head);
  }

  function setHead(log: number, head: number): number {
    if (heads.size >= MAX_HEADS) heads.clear();
    heads.set(log, head);
    return head;
  }

  /** Inside a write only. */
  function append(rows: readonly NewEventRow[], onInserted: (num: number) => void): AppendOutcome[] {
    const ends = new Map<number, { head: number; at: number }>();
    const outcomes = rows.map((row) => appendOne(row, ends, onInserted));
    for (const [log, { head: last, at }] of ends) runStatement(updateLog, last, at, log);
    return outcomes;
  }

  function appendOne(
    row: NewEventRow,
    ends: Map<number, { head: number; at: number }>,
    onInserted: (num: number) => void,
  ): AppendOutcome {
    const log = logs.findOrCreate(row.tenant, row.conversation);
    const { id, at, kind, to, hash, tokens, turn } = row;
    const seq = headOf(log) + 1;
    const data = toStored(row.data);
    const num = insertNew(insert, log, seq, id, at, kind, to.join(','), hash, tokens, turn, data);
    if (num === null)
      return { kind: 'duplicate', ...getRow<{ seq: number; hash: string }>(selectDuplicate, log, id)! };
    setHead(log, seq);
    ends.set(log, { head: seq, at });
    onInserted(num);
    for (const agent of to) {
      runStatement(insertAddressed, log, agent, seq);
      runStatement(insertPending, log, agent, seq, at);
    }
    return { kind: 'appended', seq };
  }

  function readEvents(query: Query<'readEvents'>): EventRow[] {
    const { tenant, conversation, after, upTo = Number.MAX_SAFE_INTEGER, limit, maxBytes } = query;
    const log = logs.find(tenant, conversation);
    if (log === null) return [];
    if (maxBytes === undefined)
      return allRows<StoredEvent>(selectRange, log, after, upTo, limit).map((row) => eventRow(query, row));
    const rows: EventRow[] = [];
    let bytes = 0;
    for (const stored of eachRow<StoredEvent>(selectRange, log, after, upTo, limit)) {
      const row = eventRow(query, stored);
      rows.push(row);
      bytes += Buffer.byteLength(row.data);
      if (bytes >= maxBytes) break;
    }
    return rows;
  }

  function readEvent(query: Query<'readEvent'>): EventRow | null {
    const log = logs.find(query.tenant, query.conversation);
    const row = log === null ? undefined : getRow<StoredEvent>(selectById, log, query.id);
    return row ? eventRow(query, row) : null;
  }

  function head({ tenant, conversation }: Query<'head'>): number {
    const log = logs.find(tenant, conversation);
    return log === null ? 0 : headOf(log);
  }

  function addressed({ tenant, conversation, agent, after, upTo }: Query<'addressed'>): number[] {
    const log = logs.find(tenant, conversation);
    if (log === null) return [];
    return allRows<{ seq: number }>(selectAddressed, log, agent, after, upTo).map(({ seq }) => seq);
  }

  /** Inside a write only: its events wake nobody any more. */
  function unaddress({ tenant, conversation }: Query<'deleteConversation'>): void {
    const log = logs.find(tenant, conversation);
    if (log === null) return;
    runStatement(removePending, log);
    runStatement(removeAddressed, log);
  }

  /** Inside a write only: removes the newest events, at most `limit`; returns how many. */
  function removeNewest({ tenant, conversation }: Query<'deleteConversation'>, limit: number): number {
    const log = logs.find(tenant, conversation);
    if (log === null) return 0;
    const last = headOf(log);
    heads.delete(log);
    const removed = runStatement(removeAfter, log, Math.max(0, last - limit));
    const end = getRow<{ head: number; at: number }>(selectLast, log) ?? { head: 0, at: 0 };
    runStatement(updateLog, end.head, end.at, log);
    return removed;
  }

  const forget = () => heads.clear();
  const reads = { readEvents, readEvent, head, addressed };
  return { append, ...reads, unaddress, removeNewest, forget };
}

function eventRow(
  { tenant, conversation }: { tenant: string; conversation: string },
  row: StoredEvent,
): EventRow {
  const { seq, id, at, kind, recipients, hash, tokens, turn, data } = row;
  // Agent ids hold no comma.
  const to = recipients === '' ? [] : recipients.split(',');
  return { tenant, conversation, seq, id, at, kind, to, hash, tokens, turn, data: fromStored(data) };
}
