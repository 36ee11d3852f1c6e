import type { FoundPassage, PassageDocuments } from '../troupe.ts';
import { createConditions } from './conditions.ts';
import { type Database, prepared } from './database.ts';
import type { Tables } from './postgres-schema.ts';
import { queryOf, termsOf } from './term-index.ts';

/** The conversation of a passage stays locked while it is stored, so none stays that is stored during a removal. */
export function createPassageDocuments(
  database: Database,
  { passages, conversations }: Tables,
): PassageDocuments {
  // A passage that ends after the log is left from a removed conversation of the same id.
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
      // One statement changes a row once.
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
