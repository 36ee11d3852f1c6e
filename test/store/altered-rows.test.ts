import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createStore } from '../../src/store/create-store.ts';
import type { Damage } from '../../src/store/event-row.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { contents, entryOf, logOf } from '../../packages/testing/src/store-stage.ts';
import { tempDir } from './temp-dir.ts';

const LOG = logOf();
const IDS = ['e1', 'e2', 'e3', 'e4', 'e5'];

/** A store of five events, whose file another program has then changed. */
async function changedBy(...statements: string[]) {
  const path = join(tempDir(), 'troupe.db');
  const before = createStore(await openSqliteDriver({ path }));
  await before.append(
    LOG,
    IDS.map((id) => entryOf(id, { to: ['worker'] })),
  );
  await before.close();
  const database = new DatabaseSync(path);
  for (const statement of statements) database.exec(statement);
  database.close();
  const damages: Damage[] = [];
  const driver = await openSqliteDriver({ path });
  const store = createStore(driver, undefined, (_, damage) => damages.push(damage));
  return { store, damages };
}

const OTHER_WORDS = `json_set(CAST(data AS TEXT), '$.body.content', 'other words')`;

test('an event whose text was changed is read with a mark, and reported whenever it is read', async () => {
  const { store, damages } = await changedBy(`UPDATE events SET data = ${OTHER_WORDS} WHERE seq = 3`);
  const events = await store.read(LOG, { after: 0 });
  expect(await contents(store, LOG)).toContain('(changed after it was stored) other words');
  expect(events.map(({ altered }) => altered)).toEqual([undefined, undefined, true, undefined, undefined]);
  expect(damages).toEqual(
    Array(2).fill({ kind: 'altered', seq: 3, id: 'e3', reason: 'its content does not match its hash' }),
  );
  expect((await store.verify(LOG)).problems).toEqual(damages.slice(0, 1));
  // The chain goes on.
  await store.append(LOG, [entryOf('e6')]);
  expect((await store.verify(LOG)).problemCount).toBe(1);
  await store.close();
});

const FOUND: Record<string, [statement: string, problems: object[]]> = {
  'a changed text': [
    `UPDATE events SET data = ${OTHER_WORDS} WHERE seq = 2`,
    [{ kind: 'altered', seq: 2, id: 'e2' }],
  ],
  'a changed addressee': [
    `UPDATE events SET recipients = 'boss' WHERE seq = 2`,
    [{ kind: 'altered', seq: 2, id: 'e2' }],
  ],
  'a changed text with a new hash': [
    `UPDATE events SET data = ${OTHER_WORDS}, hash = 'other' WHERE seq = 2`,
    [
      { kind: 'altered', seq: 2 },
      { kind: 'unlinked', seq: 2 },
    ],
  ],
  'a changed time': [`UPDATE events SET at = at + 1 WHERE seq = 4`, [{ kind: 'unlinked', seq: 4 }]],
  'a changed id': [`UPDATE events SET id = 'e9' WHERE seq = 4`, [{ kind: 'unlinked', seq: 4, id: 'e9' }]],
  'a changed token count': [`UPDATE events SET tokens = 0 WHERE seq = 1`, [{ kind: 'unlinked', seq: 1 }]],
  'a changed chain value': [
    `UPDATE events SET chain = 'x' WHERE seq = 2`,
    [
      { kind: 'unlinked', seq: 2 },
      { kind: 'unlinked', seq: 3 },
    ],
  ],
  'an unreadable event': [
    `UPDATE events SET data = '{' WHERE seq = 5`,
    [{ kind: 'unreadable', seq: 5, reason: expect.stringContaining('not JSON') }],
  ],
  'missing events': [`DELETE FROM events WHERE seq IN (2, 3)`, [{ kind: 'missing', seq: 2, upTo: 3 }]],
  'a missing first event': [`DELETE FROM events WHERE seq = 1`, [{ kind: 'missing', seq: 1, upTo: 1 }]],
  'an event in the place of another': [
    `DELETE FROM events WHERE seq = 2; UPDATE events SET seq = 2 WHERE seq = 5`,
    [
      { kind: 'unlinked', seq: 2, id: 'e5' },
      { kind: 'unlinked', seq: 3 },
    ],
  ],
};

for (const [name, [statement, problems]] of Object.entries(FOUND)) {
  test(`verification finds ${name}`, async () => {
    const { store } = await changedBy(statement);
    const found = await store.verify(LOG);
    expect(found.problems).toMatchObject(problems);
    expect(found.problemCount).toBe(problems.length);
    await store.close();
  });
}

test('a log of an earlier version has no chain; it begins with the first new event', async () => {
  const { store } = await changedBy(`UPDATE events SET chain = NULL`);
  expect(await store.verify(LOG)).toMatchObject({ events: 5, unchained: 5, begins: [], problems: [] });
  await store.append(LOG, [entryOf('e6'), entryOf('e7')]);
  expect(await store.verify(LOG)).toMatchObject({ events: 7, unchained: 5, begins: [6], problems: [] });
  await store.close();
});

test('a changed value in any column of any event is found', async () => {
  const change = fc.record({
    seq: fc.integer({ min: 1, max: 5 }),
    set: fc.constantFrom(
      `data = ${OTHER_WORDS}`,
      `kind = 'injection'`,
      `recipients = ''`,
      `turn = 'talk:worker:1'`,
      `hash = 'x'`,
      `chain = 'x'`,
      `at = 7`,
      `tokens = 7777`,
      // One id for each row: the same on two rows is refused.
      `id = 'other' || seq`,
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
      const { store } = await changedBy(
        ...changes.map(({ seq, set }) => `UPDATE OR IGNORE events SET ${set} WHERE seq = ${seq}`),
      );
      const { problems } = await store.verify(LOG);
      const named = new Set(problems.map(({ seq }) => seq));
      expect(changes.every(({ seq }) => named.has(seq))).toBe(true);
      expect(await store.read(LOG, { after: 0 })).toHaveLength(5);
      await store.close();
    }),
    { numRuns: 40 },
  );
});
