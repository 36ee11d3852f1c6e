import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createMongoClient, createMongoDocuments } from '../../src/store/mongo/connect-mongo.ts';
import { inboxConformance } from '../../packages/testing/src/inbox-conformance.ts';
import { storeConformance } from '../../packages/testing/src/store-conformance.ts';
import { patient } from '../support/mode.ts';
import { callsOf, uncalledOf } from './calls-of.ts';
import { eventRow } from './event-row-of.ts';
import { explainProblems, type MongoQuery, recordQueries } from './mongo-plans.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

const DAY = 24 * 3_600_000;

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  test('every query of the driver reads a range of an index, in the order of the index', async ({ skip }) => {
    const stage = mongoStage();
    await (await stage.open()).close();
    const { serverInfo } = await stage.db.command({ explain: { find: 'events' } });
    skip((serverInfo as { host: string }).host === 'secantus', 'SecantusDB plans in another way');
    const queries = new Map<string, MongoQuery>();
    const called = new Set<string>();

    async function open(): Promise<StoreDriver> {
      for (const { name } of await stage.db.listCollections().toArray())
        if (name !== 'meta') await stage.db.collection(name).deleteMany({});
      const client = createMongoClient(patient(MONGODB_URL), { monitorCommands: true });
      recordQueries(client, queries);
      const place = { hosts: 'a server', database: stage.db.databaseName };
      const documents = createMongoDocuments(client, client.db(place.database), 'local', {
        place,
        clock: systemClock,
        keepMs: DAY,
        onWarning: (error) => expect.fail(String(error)),
      });
      const driver = createDocumentDriver(documents, {
        random: Math.random,
        sleep: (ms) => systemClock.sleep(ms),
        monotonic: () => systemClock.monotonic(),
      });
      return callsOf(driver, called);
    }

    for (const each of [...storeConformance(open), ...inboxConformance(open)]) await each.run();
    // What is left of a process that ended between a large text and its record.
    const driver = await open();
    const pending = { of: { in: 'events', id: 'acme/talk/gone' }, chunks: 1, pending: new Date(0) };
    await stage.db.collection<{ _id: string }>('blobs').insertOne({ _id: 'gone:0', ...pending });
    await driver.append([{ ...eventRow('big'), data: 'x'.repeat(300_000) }]);
    await expect.poll(() => stage.db.collection('blobs').countDocuments({ of: pending.of })).toBe(0);
    await driver.check();
    await driver.close();

    expect(uncalledOf(driver, called)).toEqual([]);
    const problems: string[] = [];
    for (const query of queries.values()) problems.push(...(await explainProblems(stage.db, query)));
    expect(problems).toEqual([]);
    const kinds = new Set([...queries.keys()].map((shape) => shape.split(' ', 1)[0]));
    expect(kinds).toEqual(new Set(['aggregate', 'delete', 'find', 'findAndModify', 'update']));
  });
});
