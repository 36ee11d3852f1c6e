import {
  type AppendOutcome,
  type ConversationPage,
  type ConversationPlace,
  type ConversationRow,
  type ConversationsQuery,
  type EventRow,
  type NewEventRow,
  pageOf,
  placeOf,
  type StepAppend,
  type StepEvent,
  type StoreDriver,
} from '../driver.ts';
import {
  allRows,
  type Database,
  eachRow,
  fromStored,
  getRow,
  insertNew,
  insertRow,
  runStatement,
  type StoredText,
  toStored,
} from './database.ts';
import { spareId } from '../../events/index.ts';
import { setImmediate } from 'node:timers/promises';
import type { IdRange } from '../id-range.ts';
import { chainValue } from '../integrity.ts';

type Query<K extends keyof StoreDriver> = Parameters<StoreDriver[K]>[0];

type StoredEvent = Omit<EventRow, 'tenant' | 'conversation' | 'to' | 'data'> & {
  recipients: string;
  data: StoredText;
};

/** Maximum number of cached ends of logs. */
const MAX_HEADS = 20_000;

const COLUMNS = 'seq, id, at, kind, recipients, hash, chain, tokens, turn, data';

/** The rows of events, with a cache of the ends of logs, which `forget` clears (W5). */
export function createEventTable(database: Database, logs: LogNumbers) {
  const heads = createHeads(database);
  return {
    ...createEventAppends(database, logs, heads),
    ...createEventReads(database, logs, heads),
    ...createEventRemoval(database, logs, heads),
    forget: heads.forget,
  };
}

type Heads = ReturnType<typeof createHeads>;

/** The last event of a log; seq 0 without events. */
interface Head {
  seq: number;
  chain: string | null;
}

function createHeads(database: Database) {
  const selectHead = database.prepare(
    'SELECT seq, chain FROM events WHERE log = ? ORDER BY seq DESC LIMIT 1',
  );
  /** Reads use them too, because the file has one owner (W4, W5). */
  const heads = new Map<number, Head>();

  function headOf(log: number): Head {
    return heads.get(log) ?? setHead(log, getRow<Head>(selectHead, log) ?? { seq: 0, chain: null });
  }

  function setHead(log: number, head: Head): Head {
    if (heads.size >= MAX_HEADS) heads.clear();
    heads.set(log, head);
    return head;
  }

  return {
    headOf,
    setHead,
    drop: (log: number) => void heads.delete(log),
    forget: () => heads.clear(),
  };
}

function createEventAppends(database: Database, logs: LogNumbers, { headOf, setHead }: Heads) {
  const insert = database.prepare(
    `INSERT INTO events (log, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (log, id) DO NOTHING`,
  );
  const insertAddressed = database.prepare(
    'INSERT OR IGNORE INTO addressed (log, agent, seq) VALUES (?, ?, ?)',
  );
  const insertPending = database.prepare(
    `INSERT INTO pending (log, agent, seq, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (log, agent) DO UPDATE SET seq = excluded.seq, at = max(at, excluded.at)`,
  );
  const selectDuplicate = database.prepare('SELECT seq, hash FROM events WHERE log = ? AND id = ?');
  const updateLog = database.prepare('UPDATE logs SET lastSeq = ?, lastAt = ? WHERE num = ?');

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
    const head = headOf(log);
    const seq = head.seq + 1;
    const chain = chainValue({ ...row, seq }, head.chain);
    const data = toStored(row.data);
    const num = insertNew(insert, log, seq, id, at, kind, to.join(','), hash, chain, tokens, turn, data);
    if (num === null)
      return { kind: 'duplicate', ...getRow<{ seq: number; hash: string }>(selectDuplicate, log, id)! };
    setHead(log, { seq, chain });
    ends.set(log, { head: seq, at });
    onInserted(num);
    for (const agent of to) {
      runStatement(insertAddressed, log, agent, seq);
      runStatement(insertPending, log, agent, seq, at);
    }
    return { kind: 'appended', seq };
  }

  /** Inside a write only. The first row under its id, a spare one, or not at all, as the caller decides. */
  function appendStep(events: readonly StepEvent[], onInserted: (num: number) => void): StepAppend[] {
    const ends = new Map<number, { head: number; at: number }>();
    const appended = events.map(({ row, ifTaken }) => {
      for (let number = 1; ; number += 1) {
        const id = number === 1 ? row.id : spareId(row.id, number);
        const outcome = appendOne({ ...row, id }, ends, onInserted);
        if (outcome.kind === 'appended') return { kind: 'appended' as const, seq: outcome.seq, id };
        if (outcome.hash === row.hash) return { kind: 'there' as const, seq: outcome.seq, id };
        if (ifTaken === 'drop') return { kind: 'taken' as const };
      }
    });
    for (const [log, { head: last, at }] of ends) runStatement(updateLog, last, at, log);
    return appended;
  }

  return { append, appendStep };
}

function createEventReads(database: Database, logs: LogNumbers, { headOf }: Heads) {
  const selectRange = database.prepare(
    `SELECT ${COLUMNS} FROM events WHERE log = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
  );
  const selectById = database.prepare(`SELECT ${COLUMNS} FROM events WHERE log = ? AND id = ?`);
  const selectAddressed = database.prepare(
    'SELECT seq FROM addressed WHERE log = ? AND agent = ? AND seq > ? AND seq <= ? ORDER BY seq',
  );

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
    return log === null ? 0 : headOf(log).seq;
  }

  function addressed({ tenant, conversation, agent, after, upTo }: Query<'addressed'>): number[] {
    const log = logs.find(tenant, conversation);
    if (log === null) return [];
    return allRows<{ seq: number }>(selectAddressed, log, agent, after, upTo).map(({ seq }) => seq);
  }

  return { readEvents, readEvent, head, addressed };
}

function createEventRemoval(database: Database, logs: LogNumbers, heads: Heads) {
  const selectLast = database.prepare(
    'SELECT seq AS head, at FROM events WHERE log = ? ORDER BY seq DESC LIMIT 1',
  );
  const updateLog = database.prepare('UPDATE logs SET lastSeq = ?, lastAt = ? WHERE num = ?');
  const resetStanding = database.prepare(
    `UPDATE logs SET standingSeq = 0, rank = 0, since = 0, cost = 0, spent = 0, owner = '', agents = '', words = '', standing = NULL
     WHERE num = ?`,
  );
  const removeTerms = database.prepare(
    'DELETE FROM terms WHERE rowid IN (SELECT num FROM passages WHERE log = ?1 UNION ALL SELECT -?1)',
  );
  const removePassages = database.prepare('DELETE FROM passages WHERE log = ?');
  const removeAddressed = database.prepare('DELETE FROM addressed WHERE log = ?');
  const removePending = database.prepare('DELETE FROM pending WHERE log = ?');
  const removeAfter = database.prepare('DELETE FROM events WHERE log = ? AND seq > ?');

  /** Inside a write only. Removes the addresses of all events, so that they wake no agent. */
  function unaddress({ tenant, conversation }: Query<'deleteConversation'>): void {
    const log = logs.find(tenant, conversation);
    if (log === null) return;
    runStatement(removePending, log);
    runStatement(removeAddressed, log);
  }

  /** Inside a write only. Removes the newest events, at most `limit`; returns their number. */
  function removeNewest({ tenant, conversation }: Query<'deleteConversation'>, limit: number): number {
    const log = logs.find(tenant, conversation);
    if (log === null) return 0;
    const last = heads.headOf(log).seq;
    heads.drop(log);
    const removed = runStatement(removeAfter, log, Math.max(0, last - limit));
    const end = getRow<{ head: number; at: number }>(selectLast, log) ?? { head: 0, at: 0 };
    runStatement(updateLog, end.head, end.at, log);
    runStatement(resetStanding, log);
    runStatement(removeTerms, log);
    runStatement(removePassages, log);
    return removed;
  }

  return { unaddress, removeNewest };
}

function eventRow(
  { tenant, conversation }: { tenant: string; conversation: string },
  row: StoredEvent,
): EventRow {
  const { seq, id, at, kind, recipients, hash, chain, tokens, turn, data } = row;
  // Agent ids contain no comma.
  const to = recipients === '' ? [] : recipients.split(',');
  return { tenant, conversation, seq, id, at, kind, to, hash, chain, tokens, turn, data: fromStored(data) };
}

/** Numbers of conversations inside the database. A number never changes and is never reused. */
export interface LogNumbers {
  /** Null if nothing was ever written for the conversation. */
  find(tenant: string, conversation: string): number | null;
  /** Inside a write only. */
  findOrCreate(tenant: string, conversation: string): number;
  /** Clears the cache: a number created in an undone transaction is not in the database. */
  forget(): void;
}

const MAX_CACHED = 20_000;

export function createLogNumbers(database: Database): LogNumbers {
  const select = database.prepare('SELECT num FROM logs WHERE tenant = ? AND conversation = ?');
  const insert = database.prepare('INSERT INTO logs (tenant, conversation) VALUES (?, ?)');
  const cache = new Map<string, number>();

  function keep(key: string, num: number): number {
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(key, num);
    return num;
  }

  function find(tenant: string, conversation: string): number | null {
    const key = `${tenant}/${conversation}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const row = getRow<{ num: number }>(select, tenant, conversation);
    return row ? keep(key, row.num) : null;
  }

  return {
    find,
    findOrCreate(tenant, conversation) {
      const found = find(tenant, conversation);
      if (found !== null) return found;
      return keep(`${tenant}/${conversation}`, insertRow(insert, tenant, conversation));
    },
    forget: () => cache.clear(),
  };
}

/** Maximum of conversations found by name and sorted; for more, the newest ones are scanned. */
const MOST_NAMED = 1_000;
/** Maximum of scanned conversations per page. */
const MOST_LOOKED_AT = 20_000;
/** Rows read in one turn of the event loop. */
const STEP = 2_000;
/** The position before all conversations. */
const NEWEST: ConversationPlace = { at: Number.MAX_SAFE_INTEGER, id: '' };

/**
 * Lists conversations by covering indexes: few ids by the index of names, many by the index of times. Both scans are
 * bounded for a tenant of any size.
 */
export function createConversationList(database: Database) {
  const selectNewest = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs INDEXED BY logs_by_time
     WHERE tenant = ? AND lastSeq > 0 AND (lastAt, conversation) < (?, ?)
     ORDER BY lastAt DESC, conversation DESC LIMIT ?`,
  );
  const selectNamed = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs INDEXED BY logs_by_name
     WHERE tenant = ? AND lastSeq > 0 AND conversation >= ? AND conversation < ? LIMIT ?`,
  );

  // Rows are copied, because those of the database have no prototype.
  function newest(tenant: string, { at, id }: ConversationPlace, limit: number): ConversationRow[] {
    return allRows<ConversationRow>(selectNewest, tenant, at, id, limit).map((row) => ({ ...row }));
  }

  /** Null if there are too many. */
  function named(tenant: string, ranges: readonly IdRange[]): ConversationRow[] | null {
    const found = new Map<string, ConversationRow>();
    for (const { from, to } of ranges) {
      const rows = allRows<ConversationRow>(selectNamed, tenant, from, to, MOST_NAMED + 1);
      for (const row of rows) found.set(row.id, { ...row });
      if (found.size > MOST_NAMED) return null;
    }
    return [...found.values()];
  }

  return async function list(
    { tenant, limit, before = NEWEST, ranges }: ConversationsQuery,
    read: <T>(work: () => T) => Promise<T>,
  ): Promise<ConversationPage> {
    const few = ranges && (await read(() => named(tenant, ranges)));
    if (few) return { ...pageOf(few, { limit, before }), looked: few.length };
    const isIn = (id: string) => !ranges || ranges.some(({ from, to }) => id >= from && id < to);
    const rows: ConversationRow[] = [];
    let looked = few === null ? MOST_NAMED : 0;
    for (let place = before; ;) {
      const step = ranges ? STEP : limit + 1;
      const found = await read(() => newest(tenant, place, step));
      for (const row of found) {
        if (rows.length === limit) return { rows, next: place, looked };
        looked += 1;
        place = placeOf(row) ?? place;
        if (isIn(row.id)) rows.push(row);
      }
      if (found.length < step) return { rows, next: null, looked };
      if (looked >= MOST_LOOKED_AT) return { rows, next: place, looked };
      await setImmediate();
    }
  };
}
