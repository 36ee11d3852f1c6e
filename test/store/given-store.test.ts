import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createTroupe, type TroupeInput } from '../../src/index.ts';
import { createDocumentDriver, type StoreDriver } from '../../src/library/integrations/index.ts';
import { createMemoryDocuments, type MemoryData, newMemoryData } from '../../sim/memory-documents.ts';

const company: TroupeInput = {
  agents: [{ id: 'echo', provider: 'scripted', script: { rules: [{ reply: 'Answer {{n}}.' }] } }],
  defaults: { respondWhenUnaddressed: 'echo' },
};

/** A database of a stranger's, over rows that outlive it. */
function databaseOf(data: MemoryData): StoreDriver & { closed: number } {
  const driver = createDocumentDriver(createMemoryDocuments({ data }), {
    random: Math.random,
    sleep: (ms) => systemClock.sleep(ms),
  });
  const database = {
    ...driver,
    closed: 0,
    async close() {
      database.closed += 1;
      await driver.close();
    },
  };
  return database;
}

test('A troupe works over a database of the program, which is closed with it', async () => {
  const data = newMemoryData();
  const store = databaseOf(data);
  const first = await createTroupe(company, { store });
  expect(await first.ask('room', 'hello')).toMatchObject({ outcome: 'answered', text: 'Answer 1.' });
  await first.close();
  expect(store.closed).toBe(1);

  await using second = await createTroupe(company, { store: databaseOf(data) });
  expect(await second.ask('room', 'and again')).toMatchObject({ text: 'Answer 2.' });
  const { events } = await second.events('room');
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
});

test.each([
  ['data', { data: '.troupe' }, 'data is the directory of the embedded mode'],
  ['durability', { durability: 'disk' as const }, 'durability is a setting of the data directory'],
  ['mongodb', { mongodb: 'mongodb://127.0.0.1/troupe' }, 'store is a database of its own'],
])('A database of the program beside %s is refused', async (_, options, message) => {
  const store = databaseOf(newMemoryData());
  await expect(createTroupe(company, { ...options, store })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(message),
  });
});
