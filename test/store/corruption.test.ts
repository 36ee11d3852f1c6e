import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ActorAddress } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import {
  acquired,
  addressOf,
  entryOf,
  logOf,
  pinned,
  rejectsWith,
} from '../../packages/testing/src/store-stage.ts';
import { tempDir } from './temp-dir.ts';

const LOG = logOf();

/** A store with three events and two actors, whose file `damage` then changes. */
async function damagedStore(damage: string) {
  const path = join(tempDir(), 'troupe.db');
  const before = createStore(await openSqliteDriver({ path }));
  await before.append(
    LOG,
    ['e1', 'e2', 'e3'].map((id) => entryOf(id, { to: ['worker'] })),
  );
  await pinned(before, addressOf('worker'));
  await acquired(before, addressOf('boss'));
  await before.close();
  const database = new DatabaseSync(path);
  database.exec(damage);
  database.close();
  return createStore(await openSqliteDriver({ path }));
}

const EVENT_DAMAGE = {
  'is not JSON': `data = '{'`,
  'is not an object': `data = '[]'`,
  'lacks its author': `data = '{"body":{"content":"x"}}'`,
  'has another shape of body': `data = '{"author":{"kind":"user","id":"a","name":"A"},"body":{"nope":1}}'`,
  'is of an unknown kind': `kind = 'from.the.future'`,
  'has an id that is none': `id = ' '`,
  'is addressed to nobody there could be': `recipients = 'a,b c'`,
  'has a time before time': `at = -1`,
};

for (const [name, damage] of Object.entries(EVENT_DAMAGE)) {
  test(`an event that ${name} becomes an error at its seq, and the others are read`, async () => {
    const store = await damagedStore(`UPDATE events SET ${damage} WHERE seq = 2`);
    const events = await store.read(LOG, { after: 0 });
    expect(events.map(({ seq, kind }) => [seq, kind])).toEqual([
      [1, 'message'],
      [2, 'error'],
      [3, 'message'],
    ]);
    expect(events[1]).toMatchObject({ author: { id: 'troupe' }, to: [], body: { code: 'store_corrupt' } });
    const { message } = (events[1] as { body: { message: string } }).body;
    expect(message).toMatch(/^event 2 \(.*\) of conversation talk cannot be read: ./);
    expect((await store.append(LOG, [entryOf('e4')]))[0]?.event.seq).toBe(4);
    await store.close();
  });
}

const ACTOR_DAMAGE = {
  'is not JSON': `data = '{'`,
  'is null': `data = 'null'`,
  'lacks a field': `data = '{"turnNo":1}'`,
  'is parked for no known reason': `parked = 'whim'`,
  'has another turn in its column': `turn = 'talk:worker:9'`,
};

for (const [name, damage] of Object.entries(ACTOR_DAMAGE)) {
  test(`an actor whose record ${name} is marked in the list, and the others work`, async () => {
    const store = await damagedStore(`UPDATE actors SET ${damage} WHERE agent = 'worker'`);
    const worker: ActorAddress = addressOf('worker');
    const error = await rejectsWith('actor_corrupt', store.readActor(worker));
    expect(error.data).toMatchObject({ conversation: 'talk', agent: 'worker' });
    await rejectsWith('actor_corrupt', store.acquire(worker, { owner: 'x', now: 9000, until: 9100 }));
    const listed = await store.listActors(LOG);
    expect(listed).toEqual([
      expect.objectContaining({ agent: 'boss', fence: 1 }),
      { address: worker, corrupt: expect.any(String) },
    ]);
    await store.close();
  });
}
