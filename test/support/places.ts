import { Binary, MongoClient } from 'mongodb';
import pg from 'pg';
import { openRedis } from '../../src/queue/redis/connect-redis.ts';
import type { TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { PATIENT, withParameters } from '../../packages/postgres/test/postgres-stage.ts';
import { withDatabase, withOptions } from './mongo-url.ts';
import { removeKeys } from './redis-keys.ts';

/** Servers that the distributed mode runs on, with a store and a queue of their own for each name. */
export interface Place {
  title: string;
  /** The servers that are missing, for the names of skipped tests; null: all are there. */
  missing: string | null;
  options(name: string): Pick<TroupeOptions, 'mongodb' | 'postgres' | 'redis' | 'prefix'>;
  /** Removes all wakes, as the loss of the queue would. */
  loseQueue(name: string): Promise<void>;
  /** Changes what is stored of an actor or an event, as a manual edit or a disk error might. */
  damageActor(name: string, key: { conversation: string; agent: string }): Promise<void>;
  damageEvent(name: string, key: { conversation: string; id: string }, text: string): Promise<void>;
  /** All that is stored under a name. */
  text(name: string): Promise<string>;
  /** Cleans up on servers that the tests did not start. */
  drop(names: ReadonlySet<string>): Promise<void>;
}

const { MONGODB_URL, REDIS_URL, POSTGRES_URL } = process.env;
const TENANT = 'default';

export function mongoUrl(database: string): string {
  return patient(withDatabase(MONGODB_URL ?? 'mongodb://127.0.0.1:27017', database));
}

/** A URL with generous timeouts for a busy test machine: only a hanging server exceeds them. */
export function patient(mongodb: string): string {
  const ms = '60000';
  return withOptions(mongodb, {
    socketTimeoutMS: ms,
    serverSelectionTimeoutMS: ms,
    waitQueueTimeoutMS: ms,
  });
}

export function redisUrl(): string {
  return REDIS_URL ?? 'redis://127.0.0.1:6379';
}

/** Bytes as the text that they may be. */
function plain(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (value instanceof Binary) return plain(value.buffer);
  if (Array.isArray(value)) return value.map(plain).join(' ');
  if (typeof value === 'object' && value !== null) return plain(Object.entries(value).flat());
  return String(value);
}

async function removeKeysOf(names: Iterable<string>): Promise<void> {
  const redis = openRedis(redisUrl(), { lazyConnect: true });
  await redis.connect();
  for (const name of names) await removeKeys(redis, `{${name}}:*`);
  redis.disconnect();
}

async function change(name: string, collection: string, id: string, fields: object): Promise<void> {
  const client = new MongoClient(mongoUrl(name));
  const documents = client.db().collection<{ _id: string }>(collection);
  const { matchedCount } = await documents.updateOne({ _id: `${TENANT}/${id}` }, { $set: fields });
  await client.close();
  if (matchedCount !== 1) throw new Error(`there is no ${id} to damage`);
}

export const MONGODB_AND_REDIS: Place = {
  title: 'MongoDB and Redis',
  missing: MONGODB_URL && REDIS_URL ? null : 'no MongoDB, no Redis',
  options: (name) => ({ mongodb: mongoUrl(name), redis: redisUrl(), prefix: name }),
  loseQueue: (name) => removeKeysOf([name]),
  damageActor: (name, { conversation, agent }) =>
    change(name, 'actors', `${conversation}/${agent}`, { data: { evil: true }, processed: 'many' }),
  damageEvent: (name, { conversation, id }, text) =>
    change(name, 'events', `${conversation}/${id}`, { data: text }),
  async text(name) {
    const client = new MongoClient(mongoUrl(name));
    const texts: string[] = [];
    for (const { collectionName } of await client.db().collections())
      for await (const document of client.db().collection(collectionName).find()) texts.push(plain(document));
    await client.close();
    return texts.join('\n');
  },
  async drop(names) {
    if (names.size === 0) return;
    const client = new MongoClient(mongoUrl('test'));
    for (const name of names) await client.db(name).dropDatabase();
    await client.close();
    await removeKeysOf(names);
  },
};

async function sql(name: string, text: string, values: unknown[] = []): Promise<number> {
  const client = new pg.Client(POSTGRES_URL);
  await client.connect();
  try {
    return (await client.query(text.replaceAll(/\bt\./g, `"${name}".`), values)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}

async function changeRow(name: string, text: string, values: unknown[]): Promise<void> {
  if ((await sql(name, text, values)) !== 1) throw new Error('there is no row to damage');
}

export const POSTGRES_ALONE: Place = {
  title: 'PostgreSQL alone',
  missing: POSTGRES_URL ? null : 'no PostgreSQL',
  options: (name) => ({
    postgres: withParameters(POSTGRES_URL ?? '', { schema: name, max: '4', ...PATIENT }),
  }),
  loseQueue: async (name) => void (await sql(name, 'TRUNCATE t.wakes')),
  damageActor: (name, { conversation, agent }) =>
    changeRow(
      name,
      `UPDATE t.actors SET data = '{"evil": true}' WHERE tenant = $1 AND conversation = $2 AND agent = $3`,
      [TENANT, conversation, agent],
    ),
  damageEvent: (name, { conversation, id }, text) =>
    changeRow(name, 'UPDATE t.events SET data = $4 WHERE tenant = $1 AND conversation = $2 AND id = $3', [
      TENANT,
      conversation,
      id,
      text,
    ]),
  async text(name) {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    try {
      const { rows } = await client.query<{ table_name: string }>(
        'SELECT table_name FROM information_schema.tables WHERE table_schema = $1',
        [name],
      );
      const texts: string[] = [];
      for (const { table_name } of rows)
        texts.push(plain((await client.query(`SELECT * FROM "${name}"."${table_name}"`)).rows));
      return texts.join('\n');
    } finally {
      await client.end();
    }
  },
  async drop(names) {
    for (const name of names) await sql(name, `DROP SCHEMA IF EXISTS "${name}" CASCADE`);
  },
};

/** The place of the distributed project. */
export const PLACE =
  process.env['TROUPE_TEST_DISTRIBUTED'] === 'postgres' ? POSTGRES_ALONE : MONGODB_AND_REDIS;
