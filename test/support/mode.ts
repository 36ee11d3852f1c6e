import { createHash } from 'node:crypto';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MongoClient } from 'mongodb';
import { afterAll } from 'vitest';
import { openRedis } from '../../src/queue/redis/connect-redis.ts';
import { createTroupe, type TroupeOptions } from '../../src/runtime.ts';
import type { TroupeInput } from '../../src/config/agents-file.ts';
import { DEFAULT_TENANT } from '../../src/events/index.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import type { Troupe } from '../../src/troupe.ts';
import { withDatabase, withOptions } from './mongo-url.ts';
import { removeKeys } from './redis-keys.ts';

/**
 * Runs the same suites in both modes: `vitest.config.ts` runs them once embedded and once distributed. Tests through
 * the public API then use the real servers. Tests that inject a clock or faults use the document driver, which is the
 * MongoDB adapter without the wire.
 */
export const IS_DISTRIBUTED = process.env['TROUPE_TEST_MODE'] === 'distributed';

export const HAS_SERVICES = Boolean(process.env['MONGODB_URL'] && process.env['REDIS_URL']);

const RUN = `test_${process.pid}_${Date.now().toString(36)}`;
const databases = new Set<string>();
let opened = 0;

export async function openTroupe(input: TroupeInput, options: TroupeOptions = {}): Promise<Troupe> {
  if (!IS_DISTRIBUTED) return createTroupe(input, options);
  const { data, ...rest } = options;
  const database = databaseOf(data);
  databases.add(database);
  return createTroupe(input, { ...rest, mongodb: mongoUrl(database), redis: redisUrl(), prefix: database });
}

/** The same directory always gives the same database. */
function databaseOf(data: string | undefined): string {
  const name = data === undefined || data === ':memory:' ? `${(opened += 1)}` : shortHash(data);
  return `${RUN}_${name}`;
}

/** Corrupts a stored event, as a manual edit or a disk error might. */
export async function damageEvent(
  data: string,
  { conversation, id }: { conversation: string; id: string },
  text: string,
): Promise<void> {
  if (!IS_DISTRIBUTED) {
    const database = new DatabaseSync(path.join(data, 'troupe.db'));
    database.prepare('UPDATE events SET data = ? WHERE id = ?').run(text, id);
    return database.close();
  }
  const client = new MongoClient(mongoUrl(databaseOf(data)));
  const events = client.db().collection<{ _id: string }>('events');
  const { matchedCount } = await events.updateOne(
    { _id: `${DEFAULT_TENANT}/${conversation}/${id}` },
    { $set: { data: text } },
  );
  await client.close();
  if (matchedCount !== 1) throw new Error(`there is no event ${id} to damage`);
}

/** A store driver for tests with their own clock. */
export async function openDriver(): Promise<StoreDriver> {
  if (!IS_DISTRIBUTED) return openSqliteDriver({ path: ':memory:' });
  return createDocumentDriver(createMemoryDocuments(), {
    random: Math.random,
    sleep: () => Promise.resolve(),
  });
}

export function mongoUrl(database: string): string {
  return patient(withDatabase(process.env['MONGODB_URL'] ?? 'mongodb://127.0.0.1:27017', database));
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
  return process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
}

/** Cleans up on servers that the tests did not start. */
export async function dropDatabases(names: ReadonlySet<string>): Promise<void> {
  if (names.size === 0) return;
  const client = new MongoClient(mongoUrl('test'));
  const redis = openRedis(redisUrl(), { lazyConnect: true });
  await redis.connect();
  for (const name of names) {
    await client.db(name).dropDatabase();
    await removeKeys(redis, `{${name}}:*`);
  }
  redis.disconnect();
  await client.close();
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

if (IS_DISTRIBUTED) afterAll(() => dropDatabases(databases));
