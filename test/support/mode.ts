import { createHash } from 'node:crypto';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  createTroupe,
  type OpenOptions,
  openTroupe as openAny,
} from '../../src/library/runtime/create-troupe.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { MONGODB_AND_REDIS, PLACE } from './places.ts';

export { mongoUrl, patient, redisUrl } from './places.ts';

/**
 * Runs the same suites in both modes: `vitest.config.ts` runs them once embedded and once distributed. Tests through
 * the public API then use the real servers: MongoDB and Redis, or PostgreSQL alone with `TROUPE_TEST_DISTRIBUTED=postgres`. Tests that inject a clock or faults use the document driver, which is the
 * MongoDB adapter without the wire.
 */
export const IS_DISTRIBUTED = process.env['TROUPE_TEST_MODE'] === 'distributed';

export const HAS_SERVICES = MONGODB_AND_REDIS.missing === null;

const RUN = `test_${process.pid}_${Date.now().toString(36)}`;
const databases = new Set<string>();
let opened = 0;

export async function openTroupe(input: TroupeInput, options: OpenOptions = {}): Promise<Troupe> {
  const create = options.constants ? openAny : createTroupe;
  if (!IS_DISTRIBUTED) return create(input, options);
  const { data, ...rest } = options;
  const database = databaseOf(data);
  databases.add(database);
  return create(input, { ...rest, ...PLACE.options(database) });
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
  await PLACE.damageEvent(databaseOf(data), { conversation, id }, text);
}

/** A store driver for tests with their own clock. */
export async function openDriver(): Promise<StoreDriver> {
  if (!IS_DISTRIBUTED) return openSqliteDriver({ path: ':memory:' });
  return createDocumentDriver(createMemoryDocuments(), {
    random: Math.random,
    sleep: () => Promise.resolve(),
  });
}

/** Cleans up on servers that the tests did not start. */
export const dropDatabases = (names: ReadonlySet<string>): Promise<void> => MONGODB_AND_REDIS.drop(names);

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Called after each test file, see `same-globals.ts`: this module is loaded once for all files of a process. */
Object.assign(globalThis, {
  async [Symbol.for('troupe.test.afterFile')]() {
    const opened = new Set(databases);
    databases.clear();
    await PLACE.drop(opened);
  },
});
