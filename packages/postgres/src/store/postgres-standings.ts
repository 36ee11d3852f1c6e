import {
  emptyRanks,
  type ListedStanding,
  STANDING_ORDERS,
  type StandingCounts,
  type StandingDocuments,
  type StandingFilter,
  type StandingPage,
  standingPage,
  type StandingsQuery,
} from '../troupe.ts';
import { type Conditions, createConditions } from './conditions.ts';
import { type Database, prepared } from './database.ts';
import type { Tables } from './postgres-schema.ts';
import { queryOf, termsOf } from './term-index.ts';

/** Ranks, orders and terms are read from indexes; agent, owner and text are looked for in the rows that these leave. */
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
  // The page first: the conversations of only its rows are looked up.
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
  // Of one rank, the index has the order as well.
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
