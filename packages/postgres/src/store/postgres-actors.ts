import type { ActorCondition, ActorDocuments, ActorKey, ActorRow, DocumentChange } from '../troupe.ts';
import { type Database, prepared, type Statement, type Value } from './database.ts';
import type { Tables } from './postgres-schema.ts';

export const FACTS = 'fence, owner, until, processed, turn, abort, parked, outbox, "wakeAt"';
export const KEY = 'tenant, conversation, agent';
const OF_ACTOR = 'tenant = $1 AND conversation = $2 AND agent = $3';
/** Maximum keys of one query. */
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
  // Each half by its own index.
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
      // The new data is not sent back.
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

/** The texts differ in few ways, so their statements can be named. */
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
