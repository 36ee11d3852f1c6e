import { describe, expect, test } from 'vitest';
import { SCHEMA_VERSION } from '../../src/store/mongo/mongo-schema.ts';
import { rejectsWith } from '../../packages/testing/src/store-stage.ts';
import { startChild } from './child.ts';
import { eventRow } from './event-row-of.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

interface SchemaDoc {
  _id: string;
  [field: string]: unknown;
}

/** Opens the database on request, reports it, and closes the store. */
const OPENER = (database: string) => `
  const { openMongoDriver } = await import('SRC/store/mongo/connect-mongo.ts');
  console.log('ready');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const driver = await openMongoDriver({ url: ${JSON.stringify(MONGODB_URL)}, database: '${database}' });
  console.log('open');
  await driver.close();
  process.exit();
`;

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  test('concurrent processes prepare a new database once', async () => {
    const { db } = mongoStage();
    const children = Array.from({ length: 3 }, () => startChild(OPENER(db.databaseName)));
    for (const child of children) expect(await child.line()).toBe('ready');
    for (const child of children) child.write('go\n');
    for (const child of children) expect(await child.line()).toBe('open');
    expect(await db.collection<SchemaDoc>('meta').findOne({ _id: 'schema' })).toMatchObject({
      application: 'troupe',
      version: SCHEMA_VERSION,
      until: 0,
    });
  });

  test('the indexes are unique, and entries expire after seven days', async () => {
    const stage = mongoStage();
    const before = Date.now();
    const driver = await stage.open();
    const indexes = await stage.db.collection('events').indexes();
    expect(indexes).toContainEqual(expect.objectContaining({ key: { log: 1, seq: 1 }, unique: true }));
    for (const name of ['registers', 'blobs'])
      expect(await stage.db.collection(name).indexes()).toContainEqual(
        expect.objectContaining({ key: { expires: 1 }, expireAfterSeconds: 0 }),
      );
    await driver.putOnce({ tenant: 'acme', namespace: 'journal', key: 'k' }, 'x', 1);
    await driver.putOnce({ tenant: 'acme', namespace: 'effect', key: 'k' }, 'x'.repeat(400_000), 1);
    await driver.putOnce({ tenant: 'acme', namespace: 'artifact', key: 'k' }, 'x', 1);
    const docs = await stage.db.collection('registers').find().toArray();
    for (const { namespace, expires } of docs) {
      if (namespace === 'artifact') expect(expires).toBeUndefined();
      else expect((expires as Date).getTime()).toBeGreaterThanOrEqual(before + 7 * 24 * 3_600_000);
    }
    // A blob expires after the entry that points to it, never before.
    const [blob] = await stage.db.collection('blobs').find().toArray();
    const effect = docs.find(({ namespace }) => namespace === 'effect');
    expect(Number(blob?.['expires'])).toBeGreaterThan(Number(effect?.['expires']));
  });

  test('a newer database is refused with both versions and not changed', async () => {
    const stage = mongoStage();
    await (await stage.open()).append([eventRow('a')]);
    const meta = stage.db.collection<SchemaDoc>('meta');
    await meta.updateOne({ _id: 'schema' }, { $set: { version: SCHEMA_VERSION + 1 } });
    const before = await meta.findOne({ _id: 'schema' });
    const error = await rejectsWith('store_newer', stage.open());
    expect(error.data).toMatchObject({ found: SCHEMA_VERSION + 1, supported: SCHEMA_VERSION });
    expect(await meta.findOne({ _id: 'schema' })).toEqual(before);
  });

  test('a database of an unreleased version is refused with what to do, and not changed', async () => {
    const stage = mongoStage();
    await (await stage.open()).append([eventRow('a')]);
    const meta = stage.db.collection<SchemaDoc>('meta');
    await meta.updateOne({ _id: 'schema' }, { $set: { version: SCHEMA_VERSION - 1 } });
    const before = await meta.findOne({ _id: 'schema' });
    const error = await rejectsWith('store_older', stage.open());
    expect(error.message).toContain('import them with this one');
    expect(await meta.findOne({ _id: 'schema' })).toEqual(before);
  });

  test('a database of another program is refused and not changed', async () => {
    const stage = mongoStage();
    await stage.db.collection('events').insertOne({ mine: true });
    const error = await rejectsWith('store_corrupt', stage.open());
    expect(error.message).toContain('another program');
    expect((await stage.db.listCollections().toArray()).map(({ name }) => name)).toEqual(['events']);
  });

  test('what a dead process began is taken over when its lease ends', async () => {
    const stage = mongoStage();
    const meta = stage.db.collection<SchemaDoc>('meta');
    const until = Date.now() + 600;
    await meta.insertOne({ _id: 'schema', application: 'troupe', version: 0, owner: 'gone', until });
    const driver = await stage.open();
    expect(Date.now()).toBeGreaterThanOrEqual(until);
    expect(await driver.append([eventRow('a')])).toEqual([{ kind: 'appended', seq: 1 }]);
    expect(await meta.findOne({ _id: 'schema' })).toMatchObject({ version: SCHEMA_VERSION });
  });
});
