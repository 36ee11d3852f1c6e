import { describe, expect, test } from 'vitest';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { rejectsWith } from '../../src/testing/store-stage.ts';
import { eventRow } from './event-row-of.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };
const KEY = { ...LOG, agent: 'worker' };
const REGISTER = { tenant: 'acme', namespace: 'artifact', key: 'talk/a1' } as const;
const MIB = 1024 * 1024;
/** Above the limit, in characters of two bytes, so that the bytes are cut where a character might be. */
const LARGE = 'é'.repeat(300_000);
const DAY = 24 * 3_600_000;

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  test('a text of 20 MiB is stored in several documents and comes back whole, from a log, a record and a register', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const text = `x${'é'.repeat(10 * MIB)}\ud800`;
    const row = { ...eventRow('big', LOG), data: text };
    expect(await driver.append([eventRow('a', LOG), row, eventRow('b', LOG)])).toHaveLength(3);
    const read = await driver.readEvents({ ...LOG, after: 0, limit: 10 });
    expect(read.map(({ data }) => data.length)).toEqual([
      expect.any(Number),
      text.length,
      expect.any(Number),
    ]);
    expect(read[1]?.data === text).toBe(true);
    await driver.putOnce(REGISTER, text, 1);
    expect((await driver.readEntry(REGISTER)) === text).toBe(true);
    await driver.acquire(KEY, { owner: 'o', now: 1, until: 2 });
    const after = await driver.compareAndSet(KEY, { fence: 1 }, { data: text });
    expect(after?.data === text).toBe(true);
    expect((await driver.readActor(KEY))?.data === text).toBe(true);
    const chunks = await stage.db
      .collection('blobs')
      .aggregate<{ _id: string; size: number }>([{ $project: { size: { $bsonSize: '$$ROOT' } } }])
      .toArray();
    expect(chunks).toHaveLength(3 * 6);
    for (const { size } of chunks) expect(size).toBeLessThan(5 * MIB);
  });

  test('a large text that a record no longer points to is removed, and no other', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const blobs = stage.db.collection('blobs');
    await driver.append([{ ...eventRow('big', LOG), data: LARGE }]);
    await driver.acquire(KEY, { owner: 'o', now: 1, until: 2 });
    await driver.compareAndSet(KEY, { fence: 1 }, { data: LARGE });
    await driver.compareAndSet(KEY, { fence: 1 }, { data: `${LARGE}2` });
    expect((await driver.compareAndSet(KEY, { fence: 1 }, { until: 9 }))?.data).toBe(`${LARGE}2`);
    await expect.poll(() => blobs.countDocuments({})).toBe(2);
    expect(await driver.compareAndSet(KEY, { fence: 7 }, { data: LARGE })).toBeNull();
    await expect.poll(() => blobs.countDocuments({})).toBe(2);
    await driver.compareAndSet(KEY, { fence: 1 }, { data: '{}' });
    await expect.poll(() => blobs.countDocuments({})).toBe(1);
    expect((await driver.readEvent({ ...LOG, id: 'big' }))?.data).toBe(LARGE);
    expect((await driver.readActor(KEY))?.data).toBe('{}');
  });

  test('a repeated append of a large event leaves its text once', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const row = { ...eventRow('big', LOG), data: LARGE };
    await driver.append([row]);
    await driver.append([row]);
    await expect.poll(() => stage.db.collection('blobs').countDocuments({})).toBe(1);
    expect((await driver.readEvent({ ...LOG, id: 'big' }))?.data).toBe(LARGE);
  });

  test('a large register is swapped by its content, and goes with its text when it expires', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const key = { ...REGISTER, namespace: 'effect' } as const;
    await driver.putOnce(key, LARGE, 1);
    expect(await driver.swap(key, `${LARGE}x`, 'y')).toBe(false);
    expect(await driver.swap(key, LARGE, `${LARGE}2`)).toBe(true);
    expect(await driver.swap(key, LARGE, 'y')).toBe(false);
    expect(await driver.readEntry(key)).toBe(`${LARGE}2`);
    expect(await driver.expire('effect', 2)).toBe(1);
    await expect.poll(() => stage.db.collection('blobs').countDocuments({})).toBe(0);
    expect(await driver.readEntry(key)).toBeNull();
  });

  test('what a writer left that was cut off before it named the text is removed after a day', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    await driver.append([{ ...eventRow('big', LOG), data: LARGE }]);
    await driver.close();
    const blobs = stage.db.collection('blobs');
    const [blob] = await blobs.find().toArray();
    // The event's own text was not marked as kept either; a third is from a moment ago.
    const old = new Date(Date.now() - 2 * DAY);
    await blobs.updateOne({ _id: blob!._id }, { $set: { pending: old } });
    const orphan = { ...blob, of: { in: 'events', id: 'acme/talk/never' } };
    await blobs.insertOne({ ...orphan, _id: 'orphan:0' as never, pending: old });
    await blobs.insertOne({ ...orphan, _id: 'fresh:0' as never, pending: new Date() });
    const next = await stage.open();
    await next.putOnce(REGISTER, LARGE, 1);
    await expect.poll(() => blobs.countDocuments({ _id: 'orphan:0' as never })).toBe(0);
    expect(await blobs.countDocuments({ _id: 'fresh:0' as never })).toBe(1);
    expect((await next.readEvent({ ...LOG, id: 'big' }))?.data).toBe(LARGE);
    await expect.poll(() => blobs.countDocuments({ pending: { $exists: true } })).toBe(1);
  });

  test('what may expire is dated by the clock of the process, not by the time it tells of', async () => {
    const clock = createFakeClock(5_000 * DAY);
    const stage = mongoStage();
    const driver = await stage.open({ clock, keepMs: 1_000 });
    await driver.putOnce({ ...REGISTER, namespace: 'journal' }, 'x', 12);
    const [doc] = await stage.db.collection('registers').find().toArray();
    expect(doc).toMatchObject({ at: 12, expires: new Date(5_000 * DAY + 1_000) });
  });

  test('nothing is begun after the store is closed', async () => {
    const driver = await mongoStage().open();
    await driver.close();
    await rejectsWith('store_unavailable', driver.append([eventRow('a', LOG)]));
    await driver.close();
  });
});
