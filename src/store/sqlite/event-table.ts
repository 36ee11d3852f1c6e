import { spareId } from '../../events/index.ts';
import {
  type ActorKey,
  type AppendOutcome,
  type EventRow,
  type NewEventRow,
  type StepAppend,
  type StepEvent,
  type StoreDriver,
  type ConversationPage,
  type ConversationPlace,
  type ConversationRow,
  type ConversationsQuery,
  pageOf,
  placeOf,
} from '../driver.ts';
import { chainValue } from '../event-row.ts';
import {
  allRows,
  type Binding,
  type Database,
  eachRow,
  fromStored,
  getRow,
  insertAll,
  insertNew,
  runStatement,
  type Statement,
  type StoredText,
  toStored,
} from './database.ts';
import type { StoredLog, StoredLogs } from './stored-logs.ts';
import { setImmediate } from 'node:timers/promises';
import type { IdRange } from '../id-range.ts';

type Query<K extends Exclude<keyof StoreDriver, 'inbox'>> = Parameters<StoreDriver[K]>[0];

type StoredEvent = Omit<EventRow, 'tenant' | 'conversation' | 'to' | 'data'> & {
  recipients: string;
  data: StoredText;
};

const COLUMNS = 'seq, id, at, kind, recipients, hash, chain, tokens, turn, data';

const MOST_TOGETHER = 8;

export function createEventTable(database: Database, logs: StoredLogs) {
  return {
    ...createEventAppends(createEventInsert(database, logs)),
    ...createEventReads(database, logs),
    ...createEventRemoval(database, logs),
  };
}

type EventInsert = ReturnType<typeof createEventInsert>;

/** Its functions may be called inside a write only. */
function createEventInsert(database: Database, logs: StoredLogs) {
  const statementFor = createInsertStatements(database);
  const insertPending = database.prepare(
    `INSERT INTO pending (log, agent, seq, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (log, agent) DO UPDATE SET seq = excluded.seq, at = max(at, excluded.at)`,
  );
  const selectDuplicate = database.prepare('SELECT seq, hash FROM events WHERE log = ? AND id = ?');
  const updateLog = database.prepare('UPDATE logs SET lastSeq = ?, lastAt = ? WHERE num = ?');
  /** `newest`: number of the newest row. `size`: characters of data that were not yet reported to the checkpoints. */
  const written = { newest: 0, size: 0 };

  /** Inserts at most `MOST_TOGETHER` rows of one log. Returns the seq of the first; null without an insert if an id is taken. */
  function insertRun(rows: readonly NewEventRow[]): number | null {
    const { tenant, conversation } = rows[0]!;
    const log = logs.findOrCreate(tenant, conversation);
    let { seq, chain } = log;
    let size = 0;
    const bindings: Binding[] = [];
    for (const row of rows) {
      const { id, at, kind, to, hash, tokens, turn, data } = row;
      seq += 1;
      size += data.length;
      chain = chainValue(row, seq, chain);
      const recipients = to.length === 0 ? '' : to.join(',');
      bindings.push(log.num, seq, id, at, kind, recipients, hash, chain, tokens, turn, toStored(data));
    }
    const insert = rows.length === 1 ? insertNew : insertAll;
    const newest = insert(statementFor(rows.length), ...bindings);
    if (newest === null) return null;
    const first = log.seq + 1;
    written.newest = newest;
    written.size += size;
    Object.assign(log, { seq, chain });
    runStatement(updateLog, seq, rows.at(-1)!.at, log.num);
    for (const [index, { to, at }] of rows.entries())
      for (const agent of to) address(log, agent, first + index, at);
    return first;
  }

  function address(log: StoredLog, agent: string, seq: number, at: number): void {
    runStatement(insertPending, log.num, agent, seq, at);
    log.addressed.set(agent, seq);
  }

  function appendOne(row: NewEventRow): AppendOutcome {
    const seq = insertRun([row]);
    if (seq !== null) return { kind: 'appended', seq };
    const { num } = logs.findOrCreate(row.tenant, row.conversation);
    return { kind: 'duplicate', ...getRow<{ seq: number; hash: string }>(selectDuplicate, num, row.id)! };
  }

  return { insertRun, appendOne, written };
}

function createInsertStatements(database: Database) {
  const statements = new Map<number, Statement>();
  return (count: number): Statement => {
    const known = statements.get(count);
    if (known) return known;
    const each = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)';
    const values = Array.from({ length: count }, () => each).join(', ');
    // Of several rows none may be skipped, because their seqs are consecutive.
    const ifTaken = count === 1 ? ' ON CONFLICT (log, id) DO NOTHING' : '';
    const statement = database.prepare(`INSERT INTO events (log, ${COLUMNS}) VALUES ${values}${ifTaken}`);
    statements.set(count, statement);
    return statement;
  };
}

/** Its functions may be called inside a write only. */
function createEventAppends({ insertRun, appendOne, written }: EventInsert) {
  function append(rows: readonly NewEventRow[]): AppendOutcome[] {
    const outcomes: AppendOutcome[] = [];
    while (outcomes.length < rows.length) {
      const run = rows.slice(outcomes.length, outcomes.length + MOST_TOGETHER);
      const first = run.length === 1 ? null : insertRun(run);
      if (first === null) for (const row of run) outcomes.push(appendOne(row));
      else for (const index of run.keys()) outcomes.push({ kind: 'appended', seq: first + index });
    }
    return outcomes;
  }

  /** Appends events of a step. If another event has an id, the event takes a spare id or is dropped, as its `ifTaken` says. */
  function appendStep(events: readonly StepEvent[]): StepAppend[] {
    const appended: StepAppend[] = [];
    while (appended.length < events.length) {
      const run = runFrom(events, appended.length);
      const first = run.length === 1 ? null : insertRun(run);
      for (const [index, { id }] of run.entries()) {
        if (first !== null) appended.push({ kind: 'appended', seq: first + index, id });
        else appended.push(place(events[appended.length]!));
      }
    }
    return appended;
  }

  function place({ row, ifTaken }: StepEvent): StepAppend {
    for (let number = 1; ; number += 1) {
      const id = number === 1 ? row.id : spareId(row.id, number);
      const outcome = appendOne(number === 1 ? row : { ...row, id });
      if (outcome.kind === 'appended') return { kind: 'appended', seq: outcome.seq, id };
      if (outcome.hash === row.hash) return { kind: 'there', seq: outcome.seq, id };
      if (ifTaken === 'drop') return { kind: 'taken' };
    }
  }

  return { append, appendStep, written };
}

/** The next consecutive events of the same log, at most `MOST_TOGETHER`. */
function runFrom(events: readonly StepEvent[], from: number): NewEventRow[] {
  const run: NewEventRow[] = [];
  const { conversation } = events[from]!.row;
  for (let at = from; at < events.length && run.length < MOST_TOGETHER; at += 1) {
    const { row } = events[at]!;
    if (row.conversation !== conversation) break;
    run.push(row);
  }
  return run;
}

function createEventReads(database: Database, logs: StoredLogs) {
  const selectRange = database.prepare(
    `SELECT ${COLUMNS} FROM events WHERE log = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
  );
  const selectById = database.prepare(`SELECT ${COLUMNS} FROM events WHERE log = ? AND id = ?`);
  const selectAddressed = database.prepare(
    `SELECT seq FROM events WHERE log = ? AND seq > ? AND seq <= ?
     AND instr(',' || recipients || ',', ',' || ? || ',') > 0 ORDER BY seq`,
  );
  const selectPending = database.prepare('SELECT seq FROM pending WHERE log = ? AND agent = ?');
  const selectProcessed = database.prepare('SELECT processed FROM actors WHERE log = ? AND agent = ?');

  function readEvents(query: Query<'readEvents'>): EventRow[] {
    const { tenant, conversation, after, upTo = Number.MAX_SAFE_INTEGER, limit, maxBytes } = query;
    const log = logs.find(tenant, conversation);
    if (log === null) return [];
    if (maxBytes === undefined)
      return allRows<StoredEvent>(selectRange, log.num, after, upTo, limit).map((row) =>
        eventRow(query, row),
      );
    const rows: EventRow[] = [];
    let bytes = 0;
    for (const stored of eachRow<StoredEvent>(selectRange, log.num, after, upTo, limit)) {
      const row = eventRow(query, stored);
      rows.push(row);
      bytes += Buffer.byteLength(row.data);
      if (bytes >= maxBytes) break;
    }
    return rows;
  }

  function readEvent(query: Query<'readEvent'>): EventRow | null {
    const log = logs.find(query.tenant, query.conversation);
    const row = log === null ? undefined : getRow<StoredEvent>(selectById, log.num, query.id);
    return row ? eventRow(query, row) : null;
  }

  /** Seq of the last event that addresses the agent; may be 0 once the agent has processed it. */
  function lastAddressed(log: StoredLog, agent: string): number {
    const known = log.addressed.get(agent);
    if (known !== undefined) return known;
    const seq = getRow<{ seq: number }>(selectPending, log.num, agent)?.seq ?? 0;
    log.addressed.set(agent, seq);
    return seq;
  }

  /** `pending` has the last unprocessed event for the agent, so without one no event is read. */
  function addressed({ tenant, conversation, agent, after, upTo }: Query<'addressed'>): number[] {
    const log = logs.find(tenant, conversation);
    if (log === null) return [];
    const processed = getRow<{ processed: number }>(selectProcessed, log.num, agent)?.processed ?? 0;
    const end = Math.min(upTo, Math.max(processed, lastAddressed(log, agent)));
    if (end <= after) return [];
    return allRows<{ seq: number }>(selectAddressed, log.num, after, end, agent).map(({ seq }) => seq);
  }

  return {
    readEvents,
    readEvent,
    addressed,
    /** The end of the log if no event after `processed` addresses the actor; otherwise null. */
    restOf({ tenant, conversation, agent }: ActorKey, processed: number): number | null {
      const log = logs.find(tenant, conversation);
      if (log === null) return processed;
      return lastAddressed(log, agent) > processed ? null : Math.max(processed, log.seq);
    },
    head: ({ tenant, conversation }: Query<'head'>) => logs.find(tenant, conversation)?.seq ?? 0,
  };
}

function createEventRemoval(database: Database, logs: StoredLogs) {
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
  const removePending = database.prepare('DELETE FROM pending WHERE log = ?');
  const updateData = database.prepare('UPDATE events SET data = ? WHERE log = ? AND id = ?');
  const removeAfter = database.prepare('DELETE FROM events WHERE log = ? AND seq > ?');

  /** Removes the addressees from all events, so that they wake no agent. Inside a write only. */
  function unaddress({ tenant, conversation }: Query<'deleteConversation'>): void {
    const log = logs.find(tenant, conversation);
    if (log === null) return;
    logs.drop(tenant, conversation);
    runStatement(removePending, log.num);
  }

  /** Removes the newest events, at most `limit`. Returns their number. Inside a write only. */
  function removeNewest({ tenant, conversation }: Query<'deleteConversation'>, limit: number): number {
    const log = logs.find(tenant, conversation);
    if (log === null) return 0;
    logs.drop(tenant, conversation);
    const { num } = log;
    const removed = runStatement(removeAfter, num, Math.max(0, log.seq - limit));
    const end = getRow<{ head: number; at: number }>(selectLast, num) ?? { head: 0, at: 0 };
    runStatement(updateLog, end.head, end.at, num);
    forgetInboxOf(num);
    return removed;
  }

  function forgetInboxOf(num: number): void {
    runStatement(resetStanding, num);
    runStatement(removeTerms, num);
    runStatement(removePassages, num);
  }

  /** Inside a write only. */
  function forgetInbox({ tenant, conversation }: Query<'deleteConversation'>): void {
    const log = logs.find(tenant, conversation);
    if (log !== null) forgetInboxOf(log.num);
  }

  /** Inside a write only. */
  function replaceData(
    { tenant, conversation }: Query<'deleteConversation'>,
    rows: readonly { id: string; data: string }[],
  ): void {
    const log = logs.find(tenant, conversation);
    if (log !== null) for (const { id, data } of rows) runStatement(updateData, toStored(data), log.num, id);
  }

  return { unaddress, removeNewest, forgetInbox, replaceData };
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

/** Maximum conversations found by id and sorted here. For more, the newest conversations are scanned. */
const MOST_NAMED = 1_000;
const MOST_LOOKED_AT = 20_000;
/** Rows read before control returns to the event loop. */
const STEP = 2_000;
const NEWEST: ConversationPlace = { at: Number.MAX_SAFE_INTEGER, id: '' };

/**
 * Lists conversations by one of two indexes: few conversations by id, many by time. Both scans are bounded for a tenant of any
 * size, and that by time reads the index alone.
 */
export function createConversationList(database: Database) {
  const selectNewest = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs INDEXED BY logs_by_time
     WHERE tenant = ? AND lastSeq > 0 AND (lastAt, conversation) < (?, ?)
     ORDER BY lastAt DESC, conversation DESC LIMIT ?`,
  );
  const selectNamed = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs
     WHERE tenant = ? AND lastSeq > 0 AND conversation >= ? AND conversation < ? LIMIT ?`,
  );

  // Rows are copied, because `node:sqlite` returns them without a prototype.
  function newest(tenant: string, { at, id }: ConversationPlace, limit: number): ConversationRow[] {
    return allRows<ConversationRow>(selectNewest, tenant, at, id, limit).map((row) => ({ ...row }));
  }

  /** The conversations within the ranges; null if they are more than `MOST_NAMED`. */
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
