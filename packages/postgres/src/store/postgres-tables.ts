import {
  type ActorCondition,
  type ActorDocuments,
  type ActorKey,
  type ActorRow,
  type DocumentChange,
  emptyRanks,
  type ListedStanding,
  STANDING_ORDERS,
  type StandingCounts,
  type StandingDocuments,
  type StandingFilter,
  type StandingPage,
  standingPage,
  type StandingsQuery,
  type EntryDocuments,
  type EntryKey,
  type FoundPassage,
  type PassageDocuments,
} from '../troupe.ts';
import {
  type Database,
  prepared,
  type Statement,
  type Value,
  type Conditions,
  createConditions,
  queryOf,
  termsOf,
} from './database.ts';
import type { Tables } from './postgres-schema.ts';

export const FACTS = 'fence, owner, until, processed, turn, abort, parked, outbox, "wakeAt"';
export const KEY = 'tenant, conversation, agent';
const OF_ACTOR = 'tenant = $1 AND conversation = $2 AND agent = $3';
/** Maximum keys in one query. */
const MANY = 1_000;

export function createActorDocuments(database: Database, { actors }: Tables): ActorDocuments {
  const insert = prepared(
    `INSERT INTO ${actors} (${KEY}, ${FACTS}, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     ON CONFLICT DO NOTHING`,
  );
  const select = prepared(`SELECT ${KEY}, ${FACTS}, data FROM ${actors} WHERE ${OF_ACTOR}`);
  const selectMany = prepared(
    `SELECT ${KEY}, ${FACTS} FROM ${actors}
     JOIN unnest($1::text[], $2::text[], $3::text[]) AS keys (${KEY}) USING (${KEY})`,
  );
  const selectAll = prepared(
    `SELECT ${KEY}, ${FACTS}, data FROM ${actors} WHERE tenant = $1 AND conversation = $2 ORDER BY agent`,
  );
  // Each half of the union uses its own index.
  const selectUnfinished = prepared(
    `SELECT ${KEY} FROM ${actors} WHERE (turn IS NOT NULL OR outbox) AND parked IS NULL AND until < $1
     UNION SELECT ${KEY} FROM ${actors} WHERE "wakeAt" <= $2 AND parked IS NULL AND until < $1 LIMIT $3`,
  );
  const removeAll = prepared(`DELETE FROM ${actors} WHERE tenant = $1 AND conversation = $2`);
  const selectIf = (condition: string) =>
    prepared(`SELECT ${KEY}, ${FACTS}, data FROM ${actors} WHERE ${condition}`);

  return {
    ...createReads(),
    async insert({ tenant, conversation, agent, data, ...facts }) {
      const { fence, owner, until, processed, turn, abort, parked, outbox, wakeAt } = facts;
      const columns = [fence, owner, until, processed, turn, abort, parked, outbox, wakeAt];
      return (await database.run(insert, [tenant, conversation, agent, ...columns, data])) === 1;
    },
    async update(key, condition, { raiseFence, ...change }) {
      const { values, sets, conditions } = planUpdate(key, condition, change);
      if (raiseFence) sets.push('fence = fence + 1');
      const where = conditions.join(' AND ');
      // The server does not send back data that was just written.
      const data = change.data === undefined ? ', data' : '';
      const statement: Statement =
        sets.length === 0
          ? selectIf(where)
          : prepared(
              `UPDATE ${actors} SET ${sets.join(', ')} WHERE ${where} RETURNING ${KEY}, ${FACTS}${data}`,
            );
      const [row] = await database.rows<ActorRow>(statement, values);
      return row ? { ...row, data: change.data ?? row.data } : null;
    },
    remove: ({ tenant, conversation }) => database.run(removeAll, [tenant, conversation]),
  };

  function createReads(): Pick<ActorDocuments, 'find' | 'findMany' | 'list' | 'unfinished'> {
    return {
      async find({ tenant, conversation, agent }) {
        const [row] = await database.rows<ActorRow>(select, [tenant, conversation, agent]);
        return row ?? null;
      },
      async findMany(keys) {
        const rows: Omit<ActorRow, 'data'>[] = [];
        for (let from = 0; from < keys.length; from += MANY) {
          const some = keys.slice(from, from + MANY);
          const column = (name: keyof ActorKey) => some.map((key) => key[name]);
          const values = [column('tenant'), column('conversation'), column('agent')];
          rows.push(...(await database.rows<Omit<ActorRow, 'data'>>(selectMany, values)));
        }
        return rows;
      },
      list: ({ tenant, conversation }) => database.rows<ActorRow>(selectAll, [tenant, conversation]),
      unfinished: ({ now, clock, limit }) => database.rows<ActorKey>(selectUnfinished, [now, clock, limit]),
    };
  }
}

/** Builds an update. There are few different texts, so the statements can be named. */
export function planUpdate(
  { tenant, conversation, agent }: ActorKey,
  { fence, turn, notAborted, freeAt, parked, outbox, processed }: ActorCondition,
  change: Omit<DocumentChange, 'raiseFence'>,
): { values: Value[]; sets: string[]; conditions: string[] } {
  const values: Value[] = [tenant, conversation, agent];
  const bind = (value: Value) => `$${values.push(value)}`;
  const conditions = [OF_ACTOR];
  if (fence !== undefined) conditions.push(`fence = ${bind(fence)}`);
  if (turn !== undefined) conditions.push(`turn IS NOT DISTINCT FROM ${bind(turn)}`);
  if (notAborted) conditions.push('(turn IS NULL OR abort IS DISTINCT FROM turn)');
  if (freeAt !== undefined) conditions.push(`until < ${bind(freeAt)}`);
  if (processed !== undefined) conditions.push(`processed = ${bind(processed)}`);
  if (parked !== undefined) conditions.push(`parked IS NOT DISTINCT FROM ${bind(parked)}`);
  if (outbox !== undefined) conditions.push(outbox ? 'outbox' : 'NOT outbox');
  const sets = Object.entries(change)
    .filter(([, value]) => value !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `"${name}" = ${bind(value)}`);
  return { values, sets, conditions };
}

/** Ranks, orders and terms are read from indexes. Agent, owner and text are compared in the rows that remain. */
export function createStandingDocuments(database: Database, tables: Tables): StandingDocuments {
  const { standings, conversations } = tables;
  const save = prepared(
    `WITH log AS (
       UPDATE ${conversations} SET standing = $3
       WHERE tenant = $1 AND conversation = $2 AND standing <= $3 AND head >= $3
       RETURNING tenant, conversation
     )
     INSERT INTO ${standings} (tenant, conversation, rank, since, cost, spent, owner, agents, words, terms, data)
     SELECT tenant, conversation, $4, $5, $6, $7, $8, $9::text[], $10, $11::tsvector, $12 FROM log
     ON CONFLICT (tenant, conversation) DO UPDATE SET rank = excluded.rank, since = excluded.since,
       cost = excluded.cost, spent = excluded.spent, owner = excluded.owner, agents = excluded.agents,
       words = excluded.words, terms = excluded.terms, data = excluded.data`,
  );
  const selectSeq = prepared(
    `SELECT standing AS seq FROM ${conversations} WHERE tenant = $1 AND conversation = $2`,
  );
  const reset = prepared(
    `WITH log AS (UPDATE ${conversations} SET standing = 0 WHERE tenant = $1 AND conversation = $2)
     DELETE FROM ${standings} WHERE tenant = $1 AND conversation = $2`,
  );
  const selectBehind = prepared(
    `SELECT conversation AS id FROM ${conversations} WHERE tenant = $1 AND behind
     ORDER BY at DESC, conversation DESC LIMIT $2`,
  );
  return {
    async save({ tenant, conversation }, standing) {
      const { seq, rank, since, cost, spent, owner, agents, words, terms, data } = standing;
      const sorted = [seq, rank, since, cost, spent];
      const texts = [owner.toWellFormed(), agents, words.toWellFormed(), termsOf(tenant, terms), data];
      await database.run(save, [tenant, conversation, ...sorted, ...texts]);
    },
    async seqOf({ tenant, conversation }) {
      const [row] = await database.rows<{ seq: number }>(selectSeq, [tenant, conversation]);
      return row?.seq ?? 0;
    },
    async remove({ tenant, conversation }) {
      await database.run(reset, [tenant, conversation]);
    },
    list: (query) => list(database, tables, query),
    count: (filter) => count(database, tables, filter),
    async behind({ tenant, limit }) {
      return (await database.rows<{ id: string }>(selectBehind, [tenant, limit])).map(({ id }) => id);
    },
  };
}

async function list(
  database: Database,
  { standings, conversations }: Tables,
  query: StandingsQuery,
): Promise<StandingPage> {
  const { order, limit, after, ranges } = query;
  if (limit <= 0 || ranges?.length === 0) return { rows: [], next: null };
  const { keys, direction } = STANDING_ORDERS[order];
  const columns = [...keys, 'conversation'];
  const where = createConditions();
  addConditions(where, query);
  if (after) where.addPlace(columns, direction === 'up' ? '>' : '<', [...after.keys, after.id]);
  const sorted = columns.map((column) => `${column} ${direction === 'up' ? 'ASC' : 'DESC'}`).join(', ');
  // The page is selected first, so that conversations are joined for its rows only.
  const text = `SELECT conversation AS id, head, at, standing AS seq, rank, since, cost, spent, owner, agents, words, data
    FROM (SELECT * FROM ${standings} WHERE ${where.text()} ORDER BY ${sorted} LIMIT ${Math.trunc(limit) + 1}) AS page
    JOIN ${conversations} USING (tenant, conversation) ORDER BY ${sorted}`;
  return standingPage(await database.rows<ListedStanding>({ text }, where.values), query);
}

async function count(
  database: Database,
  { standings, conversations }: Tables,
  filter: StandingFilter,
): Promise<StandingCounts> {
  const ranks = emptyRanks();
  if (filter.ranges?.length === 0) return { ranks, behind: 0 };
  const where = createConditions();
  addConditions(where, filter);
  const late = createConditions();
  late.add('tenant = ? AND behind', filter.tenant);
  late.addRanges('conversation', filter.ranges);
  const [counted, [behind]] = await Promise.all([
    database.rows<{ rank: number; count: number }>(
      {
        text: `SELECT rank, count(*)::int AS count FROM ${standings} WHERE ${where.text()} GROUP BY rank`,
      },
      where.values,
    ),
    database.rows<{ count: number }>(
      { text: `SELECT count(*)::int AS count FROM ${conversations} WHERE ${late.text()}` },
      late.values,
    ),
  ]);
  for (const row of counted) ranks[row.rank] = row.count;
  return { ranks, behind: behind?.count ?? 0 };
}

function addConditions(where: Conditions, filter: StandingFilter): void {
  const { tenant, ranks, agent, owner, from, to, text, terms } = filter;
  where.add('tenant = ?', tenant);
  const [only, ...others] = ranks ?? [];
  // For a single rank, the index also has the order.
  if (only !== undefined && others.length === 0) where.add('rank = ?', only);
  else if (ranks) where.add('rank = ANY (?::int[])', ranks);
  if (from !== undefined) where.add('since >= ?', from);
  if (to !== undefined) where.add('since < ?', to);
  if (agent !== undefined) where.add('? = ANY (agents)', agent);
  if (owner !== undefined) where.add('owner = ?', owner.toWellFormed());
  if (text !== undefined) where.add('strpos(words, ?) > 0', text.toWellFormed());
  if (terms?.length) where.add('terms @@ ?::tsquery', queryOf(tenant, terms));
  where.addRanges('conversation', filter.ranges);
}

const OF_ENTRY = 'tenant = $1 AND namespace = $2 AND key = $3';
const ENTRY = 'tenant, namespace, key';
const KEYS = 'unnest($1::text[], $2::text[], $3::text[])';

export function createEntryDocuments(database: Database, { entries }: Tables): EntryDocuments {
  const insert = prepared(
    `INSERT INTO ${entries} (${ENTRY}, at, data) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
  );
  const select = prepared(`SELECT data FROM ${entries} WHERE ${OF_ENTRY}`);
  const selectMany = prepared(
    `SELECT place, data FROM ${KEYS} WITH ORDINALITY AS keys (${ENTRY}, place) JOIN ${entries} USING (${ENTRY})`,
  );
  const replace = prepared(`UPDATE ${entries} SET data = $5 WHERE ${OF_ENTRY} AND data = $4`);
  const removeBefore = prepared(
    `DELETE FROM ${entries} WHERE (${ENTRY}) IN (
       SELECT ${ENTRY} FROM ${entries} WHERE namespace = $1 AND at < $2 LIMIT $3)`,
  );
  const selectKeys = prepared(
    `SELECT key FROM ${entries} WHERE tenant = $1 AND namespace = $2 AND key > $3 AND key < $4 ORDER BY key LIMIT $5`,
  );
  const remove = prepared(`DELETE FROM ${entries} WHERE (${ENTRY}) IN (SELECT * FROM ${KEYS})`);

  return {
    insert: async ({ tenant, namespace, key }, data, at) =>
      (await database.run(insert, [tenant, namespace, key, at, data])) === 1,
    async find({ tenant, namespace, key }) {
      const [row] = await database.rows<{ data: string }>(select, [tenant, namespace, key]);
      return row?.data ?? null;
    },
    async findMany(keys) {
      const found = await database.rows<{ place: number; data: string }>(selectMany, columnsOf(keys));
      const texts = new Map(found.map(({ place, data }) => [place, data]));
      return keys.map((_, index) => texts.get(index + 1) ?? null);
    },
    replace: async ({ tenant, namespace, key }, from, to) =>
      (await database.run(replace, [tenant, namespace, key, from, to])) === 1,
    removeBefore: (namespace, before, limit) => database.run(removeBefore, [namespace, before, limit]),
    async keysBetween({ tenant, namespace, after, before, limit }) {
      const values = [tenant, namespace, after, before, limit];
      return (await database.rows<{ key: string }>(selectKeys, values)).map(({ key }) => key);
    },
    async remove(keys) {
      await database.run(remove, columnsOf(keys));
    },
  };
}

function columnsOf(keys: readonly EntryKey[]): string[][] {
  return [
    keys.map(({ tenant }) => tenant),
    keys.map(({ namespace }) => namespace),
    keys.map(({ key }) => key),
  ];
}

/** Storing a passage locks its conversation, so no passage that is stored during a removal stays. */
export function createPassageDocuments(
  database: Database,
  { passages, conversations }: Tables,
): PassageDocuments {
  // A passage that ends after the log is left over from a removed conversation of the same id.
  const save = prepared(
    `WITH log AS MATERIALIZED (
       SELECT tenant, conversation, head FROM ${conversations}
       WHERE tenant = $1 AND conversation = $2 FOR KEY SHARE
     )
     INSERT INTO ${passages} AS old (tenant, conversation, first, last, at, terms)
     SELECT tenant, conversation, first, last, at, terms::tsvector
     FROM log CROSS JOIN unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) AS new (first, last, at, terms)
     WHERE last <= head
     ON CONFLICT (tenant, conversation, first) DO UPDATE
     SET last = excluded.last, at = excluded.at, terms = excluded.terms WHERE old.last <= excluded.last`,
  );
  const remove = prepared(`DELETE FROM ${passages} WHERE tenant = $1 AND conversation = $2`);
  return {
    async save({ tenant, conversation }, some) {
      // One statement can change a row only once.
      const each = [...new Map(some.map((passage) => [passage.first, passage])).values()];
      await database.run(save, [
        tenant,
        conversation,
        each.map(({ first }) => first),
        each.map(({ last }) => last),
        each.map(({ at }) => Math.trunc(at)),
        each.map(({ terms }) => termsOf(tenant, terms)),
      ]);
    },
    async remove({ tenant, conversation }) {
      await database.run(remove, [tenant, conversation]);
    },
    async find({ tenant, terms, from, ranges, limit, after }) {
      if (limit <= 0 || ranges?.length === 0) return [];
      const where = createConditions();
      where.add('tenant = ?', tenant);
      where.add('terms @@ ?::tsquery', queryOf(tenant, terms));
      if (from !== undefined) where.add('at >= ?', from);
      where.addRanges('conversation', ranges);
      if (after !== undefined) {
        const [at = '', first = '', id = ''] = after.split('/');
        where.addPlace(['at', 'conversation', 'first'], '<', [Number(at), id, Number(first)]);
      }
      const text = `SELECT conversation AS id, first, last, at FROM ${passages} WHERE ${where.text()}
        ORDER BY at DESC, conversation DESC, first DESC LIMIT ${Math.trunc(limit)}`;
      const found = await database.rows<Omit<FoundPassage, 'place'>>({ text }, where.values);
      return found.map((row) => ({ ...row, place: `${row.at}/${row.first}/${row.id}` }));
    },
  };
}
