import type { EntryDocuments, EntryKey } from '../troupe.ts';
import { type Database, prepared } from './database.ts';
import type { Tables } from './postgres-schema.ts';

const OF_ENTRY = 'tenant = $1 AND namespace = $2 AND key = $3';
const KEY = 'tenant, namespace, key';
const KEYS = 'unnest($1::text[], $2::text[], $3::text[])';

export function createEntryDocuments(database: Database, { entries }: Tables): EntryDocuments {
  const insert = prepared(
    `INSERT INTO ${entries} (${KEY}, at, data) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
  );
  const select = prepared(`SELECT data FROM ${entries} WHERE ${OF_ENTRY}`);
  const selectMany = prepared(
    `SELECT place, data FROM ${KEYS} WITH ORDINALITY AS keys (${KEY}, place) JOIN ${entries} USING (${KEY})`,
  );
  const replace = prepared(`UPDATE ${entries} SET data = $5 WHERE ${OF_ENTRY} AND data = $4`);
  const removeBefore = prepared(
    `DELETE FROM ${entries} WHERE (${KEY}) IN (
       SELECT ${KEY} FROM ${entries} WHERE namespace = $1 AND at < $2 LIMIT $3)`,
  );
  const selectKeys = prepared(
    `SELECT key FROM ${entries} WHERE tenant = $1 AND namespace = $2 AND key > $3 AND key < $4 ORDER BY key LIMIT $5`,
  );
  const remove = prepared(`DELETE FROM ${entries} WHERE (${KEY}) IN (SELECT * FROM ${KEYS})`);

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
