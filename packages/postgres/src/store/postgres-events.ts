import {
  type AddressedEvent,
  type ConversationPage,
  type ConversationRow,
  type ConversationsQuery,
  eachAddressee,
  type EventDocuments,
  type EventRow,
  type LogEnd,
  type LogKey,
  placeOf,
} from '../troupe.ts';
import { createConditions, type Database, prepared, type Queries, type Value } from './database.ts';
import { isDuplicateKey } from './postgres-error.ts';
import type { Tables } from './postgres-schema.ts';

type StoredEvent = Omit<EventRow, 'tenant' | 'conversation' | 'to'> & { recipients: string[]; bytes: number };

const COLUMNS = 'seq, id, at, kind, recipients, hash, chain, tokens, turn, data';

/** Columns of an insert besides those of the log. `eventArrays` has their values. */
export const EVENT_COLUMNS = 'seq, id, at, kind, recipients, addressed, hash, chain, tokens, turn, data';
export const EVENT_VALUES =
  "seq, id, at, kind, string_to_array(recipients, ','), recipients <> '', hash, chain, tokens, turn, data";
export const EVENT_NAMES = COLUMNS;
export const EVENT_TYPES = [
  'bigint',
  'text',
  'bigint',
  'text',
  'text',
  'text',
  'text',
  'bigint',
  'text',
  'text',
] as const;
const OF_LOG = 'tenant = $1 AND conversation = $2';

/** Events of one answer of the server, which bounds its duration. */
const BATCH = 1_000;
/** Events of one answer to a read with `maxBytes`. The server computes the sizes of all of them. */
const SHORT_BATCH = 100;
/** Maximum events of one update, because updating a whole long log could exceed the time limit of a statement. */
const UNADDRESSED = 1_000;
/** Events of one answer about all conversations. */
const ADDRESSED_BATCH = 5_000;

/**
 * One write stores an event and the end of its log in the list of conversations, so the list is exact. It locks the row of the
 * conversation first; see `postgres-steps.ts`.
 */
export function createEventDocuments(database: Database, tables: Tables): EventDocuments {
  return {
    ...createEventInsert(database, tables),
    ...createEventReads(database, tables),
    ...createAddresseeReads(database, tables),
    ...createEventChanges(database, tables),
    conversations: (query) => listConversations(database, tables, query),
  };
}

function createEventInsert(
  database: Database,
  { events, conversations }: Tables,
): Pick<EventDocuments, 'insert'> {
  // Locks the row of the conversation before it inserts (P3). The first event creates this row.
  const insertText = (listed: string) => `
    WITH listed AS (${listed} RETURNING 1), added AS (
      INSERT INTO ${events} (tenant, conversation, ${EVENT_COLUMNS})
      SELECT $1, $2, ${EVENT_VALUES}
      FROM unnest(${EVENT_TYPES.map((type, index) => `$${index + 3}::${type}[]`).join(', ')}) AS new (${EVENT_NAMES})
      WHERE EXISTS (SELECT FROM listed)
      RETURNING seq
    )
    SELECT seq FROM added`;
  const last = (array: string) => `(${array}::bigint[])[cardinality(${array}::bigint[])]`;
  const end = { head: last('$3'), at: last('$5') };
  const insertFirst = prepared(
    insertText(`
      INSERT INTO ${conversations} AS old (tenant, conversation, head, at) VALUES ($1, $2, ${end.head}, ${end.at})
      ON CONFLICT (tenant, conversation) DO UPDATE SET head = excluded.head, at = excluded.at WHERE old.head = 0`),
  );
  const insertNext = prepared(
    insertText(`
      UPDATE ${conversations} SET head = ${end.head}, at = ${end.at} WHERE ${OF_LOG} AND head = ($3::bigint[])[1] - 1`),
  );

  async function insert(rows: readonly EventRow[]): Promise<number> {
    try {
      const statement = rows[0]?.seq === 1 ? insertFirst : insertNext;
      return (await database.rows(statement, columnsOf(rows))).length;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    // A key is taken, so no row was inserted. The rows before it may still be inserted.
    if (rows.length === 1) return 0;
    for (const [index, row] of rows.entries()) if ((await insert([row])) === 0) return index;
    return rows.length;
  }

  return { insert };
}

function columnsOf(rows: readonly EventRow[]): Value[] {
  const { tenant = '', conversation = '' } = rows[0] ?? {};
  return [tenant, conversation, ...eventArrays(rows)];
}

/** The values of the rows, one array per column, in the order of `EVENT_COLUMNS`. */
export function eventArrays(rows: readonly EventRow[]): (string | number | null)[][] {
  const column = <K extends Exclude<keyof EventRow, 'to'>>(name: K) => rows.map((row) => row[name]);
  return [
    column('seq'),
    column('id'),
    column('at'),
    column('kind'),
    // Agent ids contain no comma.
    rows.map(({ to }) => to.join(',')),
    column('hash'),
    column('chain'),
    column('tokens'),
    column('turn'),
    column('data'),
  ];
}

function createEventReads(
  database: Database,
  { events }: Tables,
): Pick<EventDocuments, 'find' | 'range' | 'keys' | 'last'> {
  const selectOne = prepared(`SELECT ${COLUMNS} FROM ${events} WHERE ${OF_LOG} AND id = $3`);
  const selectRange = prepared(
    `SELECT ${COLUMNS}, octet_length(data) AS bytes FROM ${events} WHERE ${OF_LOG} AND seq > $3 AND seq <= $4
     ORDER BY seq LIMIT $5`,
  );
  const selectShort = prepared(
    `SELECT ${COLUMNS}, bytes FROM (
       SELECT ${COLUMNS}, octet_length(data) AS bytes, sum(octet_length(data)) OVER (ORDER BY seq) AS upto
       FROM (SELECT * FROM ${events} WHERE ${OF_LOG} AND seq > $3 AND seq <= $4 ORDER BY seq LIMIT $5) AS lot
     ) AS sized WHERE upto - bytes < $6 ORDER BY seq`,
  );
  const selectKeys = prepared(
    `SELECT seq, id, chain FROM ${events} WHERE ${OF_LOG} AND seq > $3 AND seq <= $4`,
  );
  const selectLast = prepared(`SELECT seq, chain FROM ${events} WHERE ${OF_LOG} ORDER BY seq DESC LIMIT 1`);

  async function range(
    { tenant, conversation }: LogKey,
    { after, upTo, limit, maxBytes }: Parameters<EventDocuments['range']>[1],
  ): Promise<EventRow[]> {
    const rows: EventRow[] = [];
    let from = after;
    let bytes = 0;
    while (rows.length < limit && from < upTo) {
      const asked = Math.min(limit - rows.length, maxBytes === undefined ? BATCH : SHORT_BATCH);
      const left = maxBytes === undefined ? Number.POSITIVE_INFINITY : Math.max(1, maxBytes - bytes);
      const values = [tenant, conversation, from, upTo, asked];
      const found =
        maxBytes === undefined
          ? await database.rows<StoredEvent>(selectRange, values)
          : await database.rows<StoredEvent>(selectShort, [...values, left]);
      let stored = 0;
      for (const row of found) {
        stored += row.bytes;
        bytes += Buffer.byteLength(row.data);
        rows.push(rowOf({ tenant, conversation }, row));
        if (maxBytes !== undefined && bytes >= maxBytes) return rows;
      }
      if (found.length < asked && stored < left) return rows;
      from = found.at(-1)?.seq ?? upTo;
    }
    return rows;
  }

  return {
    range,
    async find({ tenant, conversation }, id) {
      const [row] = await database.rows<StoredEvent>(selectOne, [tenant, conversation, id]);
      return row ? rowOf({ tenant, conversation }, row) : null;
    },
    keys: ({ tenant, conversation }, { after, upTo }) =>
      database.rows<LogEnd & { id: string }>(selectKeys, [tenant, conversation, after, upTo]),
    async last({ tenant, conversation }) {
      const [end] = await database.rows<LogEnd>(selectLast, [tenant, conversation]);
      return end ?? { seq: 0, chain: null };
    },
  };
}

function rowOf({ tenant, conversation }: LogKey, row: StoredEvent): EventRow {
  const { seq, id, at, kind, recipients: to, hash, chain, tokens, turn, data } = row;
  return { tenant, conversation, seq, id, at, kind, to, hash, chain, tokens, turn, data };
}

function createAddresseeReads(
  database: Database,
  { events }: Tables,
): Pick<EventDocuments, 'addressed' | 'visitAddressees'> {
  const selectAddressed = prepared(
    `SELECT seq FROM ${events} WHERE ${OF_LOG} AND seq > $3 AND seq <= $4 AND addressed AND $5 = ANY (recipients)
     ORDER BY seq`,
  );
  // The first condition lets the scan start inside the index, whose only column is the time.
  const selectPage = prepared(
    `SELECT tenant, conversation, seq, at, recipients AS "to" FROM ${events}
     WHERE addressed AND at >= $1 AND (at, tenant, conversation, seq) > ($1, $2, $3, $4)
     ORDER BY at, tenant, conversation, seq LIMIT ${ADDRESSED_BATCH}`,
  );
  return {
    /** Uses no index by agent, because callers ask for the unread end of the log, which is short. */
    async addressed({ tenant, conversation, agent }, { after, upTo }) {
      const values = [tenant, conversation, after, upTo, agent];
      return (await database.rows<{ seq: number }>(selectAddressed, values)).map(({ seq }) => seq);
    },
    async visitAddressees(since, visit) {
      for (let place: Value[] = [since, '', '', 0]; ;) {
        const page = await database.rows<AddressedEvent>(selectPage, place);
        await visit(eachAddressee(page));
        const last = page.at(-1);
        if (!last || page.length < ADDRESSED_BATCH) return;
        place = [last.at, last.tenant, last.conversation, last.seq];
      }
    },
  };
}

function createEventChanges(
  database: Database,
  tables: Tables,
): Pick<EventDocuments, 'unchain' | 'unaddress' | 'removeNewest' | 'replaceData'> {
  const { events, conversations } = tables;
  const unchain = prepared(`UPDATE ${events} SET chain = NULL WHERE ${OF_LOG} AND id = $3`);
  const unaddress = prepared(
    `UPDATE ${events} SET addressed = false WHERE ${OF_LOG} AND seq IN (
       SELECT seq FROM ${events} WHERE ${OF_LOG} AND addressed ORDER BY seq LIMIT ${UNADDRESSED})`,
  );
  const replaceData = prepared(
    `UPDATE ${events} SET data = new.data FROM unnest($3::text[], $4::text[]) AS new (id, data)
     WHERE ${OF_LOG} AND ${events}.id = new.id`,
  );
  // Writers of events lock the same row before they write (P3), so no event is missed.
  const lock = prepared(`SELECT 1 FROM ${conversations} WHERE ${OF_LOG} FOR UPDATE`);
  const remove = prepared(
    `DELETE FROM ${events} WHERE ${OF_LOG} AND seq IN (
       SELECT seq FROM ${events} WHERE ${OF_LOG} AND seq > $3 ORDER BY seq DESC LIMIT $4)`,
  );
  const selectEnd = prepared(`SELECT seq, at FROM ${events} WHERE ${OF_LOG} ORDER BY seq DESC LIMIT 1`);
  const relist = prepared(`UPDATE ${conversations} SET head = $3, at = $4 WHERE ${OF_LOG}`);
  const unlist = prepared(`DELETE FROM ${conversations} WHERE ${OF_LOG}`);

  async function removeNewest(queries: Queries, log: readonly string[], after: number, limit: number) {
    await queries.rows(lock, log);
    const removed = await queries.run(remove, [...log, after, limit]);
    const [end] = await queries.rows<{ seq: number; at: number }>(selectEnd, log);
    if (end) await queries.run(relist, [...log, end.seq, end.at]);
    else await queries.run(unlist, log);
    return removed;
  }

  return {
    async unchain({ tenant, conversation }, id) {
      await database.run(unchain, [tenant, conversation, id]);
    },
    async replaceData({ tenant, conversation }, rows) {
      const values = [rows.map(({ id }) => id), rows.map(({ data }) => data)];
      await database.run(replaceData, [tenant, conversation, ...values]);
    },
    async unaddress({ tenant, conversation }) {
      while ((await database.run(unaddress, [tenant, conversation])) === UNADDRESSED);
    },
    removeNewest: ({ tenant, conversation }, { after, limit }) =>
      database.transaction((queries) => removeNewest(queries, [tenant, conversation], after, limit)),
  };
}

async function listConversations(
  database: Database,
  { conversations }: Tables,
  { tenant, limit, before, ranges }: ConversationsQuery,
): Promise<ConversationPage> {
  if (limit <= 0 || ranges?.length === 0) return { rows: [], next: null, looked: 0 };
  const where = createConditions();
  where.add('tenant = ?', tenant);
  if (before) where.add('(at, conversation) < (?, ?)', before.at, before.id);
  where.addRanges('conversation', ranges);
  const text = `SELECT conversation AS id, head, at FROM ${conversations} WHERE ${where.text()}
    ORDER BY at DESC, conversation DESC LIMIT ${Math.trunc(limit) + 1}`;
  const found = await database.rows<ConversationRow>({ text }, where.values);
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? placeOf(rows.at(-1)) : null, looked: found.length };
}
