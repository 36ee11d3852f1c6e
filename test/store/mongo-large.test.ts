import { describe, expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { rejectsWith } from '../../packages/testing/src/store-stage.ts';
import { eventRow } from './event-row-of.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };
const KEY = { ...LOG, agent: 'worker' };
const ENTRY = { tenant: 'acme', namespace: 'artifact', key: 'talk/a1' } as const;
const MIB = 1024 * 1024;
/** Above the limit, with characters of two bytes, so that a chunk may end within a character. */
const LARGE = 'é'.repeat(300_000);
const DAY = 24 * 3_600_000;

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  test('a text of 20 MiB is stored in several documents and read back from a log, a record and an entry', async () => {
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
    await driver.putOnce(ENTRY, text, 1);
    expect((await driver.readEntry(ENTRY)) === text).toBe(true);
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

  test('a large text is removed when no record points to it', async () => {
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

  test('a repeated append of a large event stores its text once', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const row = { ...eventRow('big', LOG), data: LARGE };
    await driver.append([row]);
    await driver.append([row]);
    await expect.poll(() => stage.db.collection('blobs').countDocuments({})).toBe(1);
    expect((await driver.readEvent({ ...LOG, id: 'big' }))?.data).toBe(LARGE);
  });

  test('a large entry is swapped by its content, and expires with its text', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const key = { ...ENTRY, namespace: 'effect' } as const;
    await driver.putOnce(key, LARGE, 1);
    expect(await driver.swap(key, `${LARGE}x`, 'y')).toBe(false);
    expect(await driver.swap(key, LARGE, `${LARGE}2`)).toBe(true);
    expect(await driver.swap(key, LARGE, 'y')).toBe(false);
    expect(await driver.readEntry(key)).toBe(`${LARGE}2`);
    expect(await driver.expire('effect', 2)).toBe(1);
    await expect.poll(() => stage.db.collection('blobs').countDocuments({})).toBe(0);
    expect(await driver.readEntry(key)).toBeNull();
  });

  test('a text of a crashed writer is removed after a day', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    await driver.append([{ ...eventRow('big', LOG), data: LARGE }]);
    await driver.close();
    const blobs = stage.db.collection('blobs');
    const [blob] = await blobs.find().toArray();
    // The text of the event is pending, too; a third text is new.
    const old = new Date(Date.now() - 2 * DAY);
    await blobs.updateOne({ _id: blob!._id }, { $set: { pending: old } });
    const orphan = { ...blob, of: { in: 'events', id: 'acme/talk/never' } };
    await blobs.insertOne({ ...orphan, _id: 'orphan:0' as never, pending: old });
    await blobs.insertOne({ ...orphan, _id: 'fresh:0' as never, pending: new Date() });
    const next = await stage.open();
    await next.putOnce(ENTRY, LARGE, 1);
    await expect.poll(() => blobs.countDocuments({ _id: 'orphan:0' as never })).toBe(0);
    expect(await blobs.countDocuments({ _id: 'fresh:0' as never })).toBe(1);
    expect((await next.readEvent({ ...LOG, id: 'big' }))?.data).toBe(LARGE);
    await expect.poll(() => blobs.countDocuments({ pending: { $exists: true } })).toBe(1);
  });

  test('entries expire by the clock of the process, not by their own time', async () => {
    const clock = createFakeClock(5_000 * DAY);
    const stage = mongoStage();
    const driver = await stage.open({ clock, keepMs: 1_000 });
    await driver.putOnce({ ...ENTRY, namespace: 'journal' }, 'x', 12);
    const [doc] = await stage.db.collection('registers').find().toArray();
    expect(doc).toMatchObject({ at: 12, expires: new Date(5_000 * DAY + 1_000) });
  });

  test('a closed store refuses calls', async () => {
    const driver = await mongoStage().open();
    await driver.close();
    await rejectsWith('store_unavailable', driver.append([eventRow('a', LOG)]));
    await driver.close();
  });
});
