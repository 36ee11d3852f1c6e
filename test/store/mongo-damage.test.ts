import type { Document } from 'mongodb';
import { BSON } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { createStore } from '../../src/store/create-store.ts';
import {
  acquired,
  addressOf,
  entryOf,
  logOf,
  pinned,
  rejectsWith,
} from '../../packages/testing/src/store-stage.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

const LOG = logOf();
const WORKER = addressOf('worker');

/** A store with three events and two actors, one document of which is then damaged. */
async function damaged(collection: 'events' | 'actors', id: string, edit: Document) {
  const stage = mongoStage();
  const before = createStore(await stage.open());
  const content = edit['$unset'] && 'blob' in edit['$unset'] ? 'x'.repeat(300_000) : 'x';
  await before.append(
    LOG,
    ['e1', 'e2', 'e3'].map((each) => entryOf(each, { to: ['worker'], content })),
  );
  await pinned(before, WORKER);
  await acquired(before, addressOf('boss'));
  await before.close();
  if (edit['blobs'] === 'gone') await stage.db.collection('blobs').deleteMany({});
  else await stage.db.collection(collection).updateOne({ _id: id as never }, edit);
  return createStore(await stage.open());
}

const EVENT_DAMAGE: Record<string, Document> = {
  'has a number for its data': { $set: { data: 7 } },
  'has no data': { $unset: { data: '' } },
  'has an object for its data': { $set: { data: { $set: 1, __proto__x: 2 } } },
  'lacks its author': { $set: { data: '{"body":{"content":"x"}}' } },
  'is of an unknown kind': { $set: { kind: 'from.the.future' } },
  'has a kind that is no text': { $set: { kind: 5 } },
  'is addressed to nobody there could be': { $set: { to: ['a b'] } },
  'is addressed to a number': { $set: { to: 7 } },
  'has a time that is a text': { $set: { at: 'yesterday' } },
  'has a time that no number holds': { $set: { at: BSON.Long.MAX_VALUE } },
  'names a large text that is not there': {
    $unset: { data: '' },
    $set: { blob: { ref: 'x', chunks: 1, encoding: 'utf8' } },
  },
  'names a large text wrongly': { $unset: { data: '' }, $set: { blob: { ref: 7, chunks: -1 } } },
};

const ACTOR_DAMAGE: Record<string, Document> = {
  'is not JSON': { $set: { data: '{' } },
  'has a number for its data': { $set: { data: 7 } },
  'has no data': { $unset: { data: '' } },
  'names a large text that is not there': {
    $unset: { data: '' },
    $set: { blob: { ref: 'x', chunks: 1, encoding: 'utf8' } },
  },
  'has a text for its fence': { $set: { fence: 'one' } },
  'has a text for its lease': { $set: { until: 'tomorrow' } },
  'has a number for its cancelled turn': { $set: { abort: 1 } },
  'has a list for what it has processed': { $set: { processed: [1] } },
  'has an object for its turn': { $set: { turn: { $ne: null } } },
  'is parked for no known reason': { $set: { parked: 'whim' } },
  'has another turn in its field': { $set: { turn: 'talk:worker:9' } },
  'has an outbox in its field only': { $set: { outbox: true } },
  'has a timer in its field only': { $set: { wakeAt: 7 } },
  'has a text for the time of its timer': { $set: { wakeAt: 'noon' } },
};

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  for (const [name, edit] of Object.entries(EVENT_DAMAGE)) {
    test(`an event that ${name} becomes an error at its seq, and the others are read`, async () => {
      const store = await damaged('events', 'acme/talk/e2', edit);
      const events = await store.read(LOG, { after: 0 });
      expect(events.map(({ seq, kind }) => [seq, kind])).toEqual([
        [1, 'message'],
        [2, 'error'],
        [3, 'message'],
      ]);
      expect(events[1]).toMatchObject({ author: { id: 'troupe' }, to: [], body: { code: 'store_corrupt' } });
      expect((await store.append(LOG, [entryOf('e4')]))[0]?.event.seq).toBe(4);
      expect(await store.due({ now: 5000, clock: 0, since: 0, limit: 10 })).toContainEqual(WORKER);
      expect(await store.conversations(LOG.tenant, 9)).toMatchObject([{ id: 'talk', head: 4 }]);
    });
  }

  for (const [name, edit] of Object.entries(ACTOR_DAMAGE)) {
    test(`an actor whose record ${name} is marked in the list, is due, and can be parked`, async () => {
      const store = await damaged('actors', 'acme/talk/worker', edit);
      const error = await rejectsWith('actor_corrupt', store.readActor(WORKER));
      expect(error.data).toMatchObject({ conversation: 'talk', agent: 'worker' });
      const isParked = name.includes('parked');
      const isDue = async () =>
        (await store.due({ now: 50_000, clock: 0, since: 0, limit: 10 })).some(
          ({ agent }) => agent === 'worker',
        );
      expect(await isDue()).toBe(!isParked);
      await rejectsWith('actor_corrupt', store.acquire(WORKER, { owner: 'x', now: 9000, until: 9100 }));
      expect(await store.listActors(LOG)).toEqual([
        expect.objectContaining({ agent: 'boss', fence: 1 }),
        { address: WORKER, corrupt: expect.any(String) },
      ]);
      await store.park(WORKER, 'failed');
      expect(await isDue()).toBe(false);
      expect(await store.acquire(addressOf('boss'), { owner: 'x', now: 9000, until: 9100 })).toMatchObject({
        kind: 'acquired',
      });
    });
  }

  test('an event with a seq of another type hides no other, and a fractional seq is reported', async () => {
    const stage = mongoStage();
    const store = createStore(await stage.open());
    await store.append(LOG, [entryOf('e1'), entryOf('e2')]);
    const events = stage.db.collection('events');
    await events.insertOne({ _id: 'acme/talk/x' as never, log: 'acme/talk', seq: 'last' });
    const other = createStore(await stage.open());
    expect((await other.append(LOG, [entryOf('e3')]))[0]?.event.seq).toBe(3);
    await events.insertOne({ _id: 'acme/talk/y' as never, log: 'acme/talk', seq: 3.5 });
    const third = createStore(await stage.open());
    await rejectsWith('store_corrupt', third.append(LOG, [entryOf('e4')]));
    expect((await third.append(logOf('else'), [entryOf('e1')]))[0]?.event.seq).toBe(1);
    expect(await third.conversations(LOG.tenant, 9)).toHaveLength(2);
  });

  test('a damaged entry is an error, and its neighbours are read', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const key = { tenant: 'acme', namespace: 'journal', key: 'a' } as const;
    await driver.putOnce(key, 'x', 1);
    await driver.putOnce({ ...key, key: 'b' }, 'y', 1);
    await stage.db
      .collection('registers')
      .updateOne({ _id: 'acme/journal/a' as never }, { $set: { data: [1] } });
    await rejectsWith('store_corrupt', driver.readEntry(key));
    expect(await driver.readEntry({ ...key, key: 'b' })).toBe('y');
  });
});
