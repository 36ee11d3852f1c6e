import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createStore } from '../../src/store/create-store.ts';
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import {
  acquired,
  addressOf,
  contents,
  entryOf,
  inLots,
  logOf,
  pinned,
  rejectsWith,
} from '../../packages/testing/src/store-stage.ts';
import { startChild } from './child.ts';
import { tempDir } from './temp-dir.ts';

const LOG = logOf();

test('a reopened store has all data', async () => {
  const path = join(tempDir(), 'troupe.db');
  const first = createStore(await openSqliteDriver({ path }));
  const [written] = await first.append(LOG, [entryOf('e1', { to: ['worker'] })]);
  const record = await acquired(first, addressOf());
  await first.close();
  const second = createStore(await openSqliteDriver({ path }));
  expect(await second.read(LOG, { after: 0 })).toEqual([written?.event]);
  expect(await second.readActor(addressOf())).toEqual(record);
  expect((await second.append(LOG, [entryOf('e1', { to: ['worker'] })]))[0]?.kind).toBe('exists');
  expect((await second.append(LOG, [entryOf('e2')]))[0]?.event.seq).toBe(2);
  await second.close();
});

test('acknowledged appends survive kill -9 of the process', async () => {
  const path = join(tempDir(), 'troupe.db');
  const child = startChild(`
    import { createStore } from 'SRC/store/create-store.ts';
    import { openSqliteDriver } from 'SRC/store/sqlite/sqlite-driver.ts';
    import { entryOf, logOf } from 'SRC/../packages/testing/src/store-stage.ts';
    const store = createStore(await openSqliteDriver({ path: ${JSON.stringify(path)} }));
    for (let n = 1; ; n += 1) {
      await store.append(logOf(), [entryOf('e' + n)]);
      console.log(n);
    }
  `);
  let reported = 0;
  while (reported < 50) reported = Number(await child.line());
  await child.kill();
  const store = createStore(await openSqliteDriver({ path }));
  const events = await store.read(LOG, { after: 0 });
  expect(events.length).toBeGreaterThanOrEqual(reported);
  expect(events.map(({ seq, id }) => [seq, id])).toEqual(events.map((_, at) => [at + 1, `e${at + 1}`]));
  await store.close();
});

test('a newer store is refused with both versions and not changed', async () => {
  const path = join(tempDir(), 'troupe.db');
  await (await openSqliteDriver({ path })).close();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99');
  const error = await rejectsWith('store_newer', openSqliteDriver({ path }));
  expect(error.data).toMatchObject({ found: 99, supported: SCHEMA_VERSION });
  expect(error.message).toContain(`version 99; this Troupe supports up to ${SCHEMA_VERSION}`);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 99 });
  database.close();
});

test('a store of an unreleased version is refused with what to do, and not changed', async () => {
  const path = join(tempDir(), 'troupe.db');
  await (await openSqliteDriver({ path })).close();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 7');
  const error = await rejectsWith('store_older', openSqliteDriver({ path }));
  expect(error.data).toMatchObject({ found: 7, supported: SCHEMA_VERSION });
  expect(error.message).toContain(
    'Export its conversations with the old version and import them with this one',
  );
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 7 });
  database.close();
});

test('a removal leaves only the name of the conversation in the file', async () => {
  const path = join(tempDir(), 'troupe.db');
  const store = createStore(await openSqliteDriver({ path }));
  await store.append(LOG, [entryOf('e1', { to: ['worker'] }), entryOf('e2')]);
  await pinned(store, addressOf());
  await store.inbox.savePassages(LOG, [{ first: 1, last: 2, at: 1, terms: ['word'] }]);
  await store.deleteConversation(LOG);
  await store.close();
  const database = new DatabaseSync(path);
  for (const table of ['events', 'pending', 'actors', 'registers', 'passages'])
    expect(database.prepare(`SELECT * FROM ${table}`).all()).toEqual([]);
  database.close();
});

test('a file that is not a database is refused', async () => {
  const path = join(tempDir(), 'troupe.db');
  writeFileSync(path, 'not a database at all, but long enough to look at. '.repeat(100));
  await rejectsWith('store_corrupt', openSqliteDriver({ path }));
});

test('the database of another program is refused and not changed', async () => {
  const path = join(tempDir(), 'troupe.db');
  const database = new DatabaseSync(path);
  database.exec('CREATE TABLE songs (title TEXT)');
  await rejectsWith('store_corrupt', openSqliteDriver({ path }));
  expect(database.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'songs' }]);
  database.close();
});

test('a truncated file is reported as corrupt, at opening or at reading', async () => {
  const path = join(tempDir(), 'troupe.db');
  const before = createStore(await openSqliteDriver({ path }));
  await before.append(
    LOG,
    Array.from({ length: 500 }, (_, n) => entryOf(`e${n}`, { content: 'x'.repeat(500) })),
  );
  await before.close();
  truncateSync(path, 20 * 4096);
  await rejectsWith(
    'store_corrupt',
    (async () => {
      const store = createStore(await openSqliteDriver({ path }));
      try {
        await store.read(LOG, { after: 0 });
      } finally {
        await store.close();
      }
    })(),
  );
});

test('a missing directory is reported with what to do', async () => {
  const path = join(tempDir(), 'missing', 'troupe.db');
  const error = await rejectsWith('data_unwritable', openSqliteDriver({ path }));
  expect(error.message).toContain(path);
});

/** Runs in a process without root rights, because root may write anywhere. */
async function openWithoutRights(
  dir: string,
  file: string,
  mode: { dir: number; file: number },
): Promise<string> {
  const child = startChild(`
    import { chmodSync } from 'node:fs';
    import { openSqliteDriver } from 'SRC/store/sqlite/sqlite-driver.ts';
    import { lockDataDir } from 'SRC/store/sqlite/data-lock.ts';
    const dir = ${JSON.stringify(dir)};
    const file = dir + '/' + ${JSON.stringify(file)};
    await (await openSqliteDriver({ path: dir + '/troupe.db' })).close();
    chmodSync(dir + '/troupe.db', ${mode.file});
    chmodSync(dir, ${mode.dir});
    if (process.getuid() === 0) process.seteuid(65534);
    const codes = [];
    await openSqliteDriver({ path: file }).then(() => codes.push('opened'), (error) => codes.push(error.code));
    try { lockDataDir(dir); codes.push('locked'); } catch (error) { codes.push(error.code); }
    if (process.getuid() === 0) process.seteuid(0);
    chmodSync(dir, 0o777);
    console.log(codes.join(' '));
  `);
  return child.line();
}

test('a read-only directory is unwritable, for a new store, an old one and the lock', async () => {
  const mode = { dir: 0o555, file: 0o666 };
  expect(await openWithoutRights(tempDir(), 'new.db', mode)).toBe('data_unwritable data_unwritable');
  expect(await openWithoutRights(tempDir(), 'troupe.db', mode)).toBe('data_unwritable data_unwritable');
});

test('a read-only file is unwritable', async () => {
  const mode = { dir: 0o777, file: 0o444 };
  expect(await openWithoutRights(tempDir(), 'troupe.db', mode)).toBe('data_unwritable locked');
});

test('a full disk refuses writes, keeps the log whole, and recovers with free space', async () => {
  const path = join(tempDir(), 'troupe.db');
  const driver = await openSqliteDriver({ path, maxPages: 200 });
  const store = createStore(driver);
  for (let n = 0; n < 50; n += 1)
    await driver.putOnce({ tenant: LOG.tenant, namespace: 'effect', key: `b${n}` }, 'x'.repeat(8000), 1);
  const writes = Array.from({ length: 300 }, (_, n) =>
    store.append(logOf(`talk-${n % 3}`), [
      entryOf(`e${n}`, { to: ['worker'], content: n === 150 ? 'x'.repeat(2_000_000) : 'x'.repeat(2000) }),
    ]),
  );
  const results = await Promise.allSettled(writes);
  const failed = results.filter((each) => each.status === 'rejected');
  expect(failed.length).toBeGreaterThan(50);
  expect(failed.length).toBeLessThan(300);
  for (const { reason } of failed)
    expect(reason).toMatchObject({ code: 'store_unavailable', policy: 'retry' });
  expect(failed[0]?.reason.message).toMatch(/disk is full/);
  const stored = await Promise.all([0, 1, 2].map((n) => store.read(logOf(`talk-${n}`), { after: 0 })));
  expect(stored.flat().length).toBe(300 - failed.length);
  for (const events of stored) expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
  for (const [n, events] of stored.entries()) {
    const seqs = await store.addressed(addressOf('worker', `talk-${n}`), { after: 0, upTo: 1000 });
    expect(seqs).toEqual(events.map(({ seq }) => seq));
  }
  expect(await driver.expire('effect', 2)).toBe(50);
  const [written] = await store.append(LOG, [entryOf('after', { content: 'x'.repeat(2000) })]);
  expect(written?.event.seq).toBe(1);
  expect(await contents(store, LOG)).toEqual(['x'.repeat(2000)]);
  await store.close();
});

test('a failing write fails none of those committed with it', async () => {
  const store = createStore(await openSqliteDriver({ path: ':memory:' }));
  const bad = { ...entryOf('bad'), at: undefined as unknown as number };
  const results = await Promise.allSettled([
    store.append(LOG, [entryOf('e1')]),
    store.append(LOG, [entryOf('half'), bad]),
    store.append(LOG, [entryOf('e2')]),
    store.journal(LOG.tenant, 'k', 'd', 1),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(await contents(store, LOG)).toEqual(['e1', 'e2']);
  await store.close();
});

test('a database locked by another program is unavailable, not corrupt', async () => {
  const path = join(tempDir(), 'troupe.db');
  const store = createStore(await openSqliteDriver({ path }));
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  await rejectsWith('store_unavailable', store.append(LOG, [entryOf('e1')]));
  other.exec('ROLLBACK');
  other.close();
  expect((await store.append(LOG, [entryOf('e1')]))[0]?.kind).toBe('appended');
  await store.close();
});

test('a sweep reads only the remaining work', async () => {
  const path = join(tempDir(), 'troupe.db');
  const store = createStore(await openSqliteDriver({ path }));
  await store.append(LOG, [entryOf('e1', { to: ['worker'] }), entryOf('e2', { to: ['worker', 'boss'] })]);
  await store.update(await acquired(store, addressOf()), { processed: 2 });
  await store.close();
  const database = new DatabaseSync(path);
  expect(database.prepare('SELECT agent, seq FROM pending').all()).toEqual([{ agent: 'boss', seq: 2 }]);
  database.close();
});

test('a turn of four short events, a journal entry, a receipt and a record adds at most 4 kB to the file', async () => {
  const path = join(tempDir(), 'troupe.db');
  const driver = await openSqliteDriver({ path });
  const store = createStore(driver);
  const turns = 400;
  for (let n = 0; n < turns; n += 1) {
    const conversation = `01JABCDEFGHJKMNPQRSTVWX${n % 20}`;
    const turn = `${conversation}:worker:${n}`;
    const entries = [0, 1, 2, 3].map((k) =>
      entryOf(`${turn}:${k}`, { to: ['worker'], content: 'word '.repeat(20) }),
    );
    await store.append(logOf(conversation), entries);
    await store.journal(LOG.tenant, `${turn}:step:0`, 'x'.repeat(200), n);
    await driver.putOnce({ tenant: 'acme', namespace: 'prompt', key: `${turn}:0` }, 'x'.repeat(800), n);
    const record = await acquired(store, addressOf('worker', conversation), n * 1000);
    await store.update(record, { processed: n, state: { snapshot: 'x'.repeat(300) } });
  }
  await store.close();
  const database = new DatabaseSync(path);
  const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count']);
  database.close();
  expect((pages * 4096) / turns).toBeLessThan(4000);
});

test('a word of thousands of conversations is found and counted like a rare one', async () => {
  const store = createStore(await openSqliteDriver({ path: ':memory:' }));
  const { tenant } = LOG;
  const all = Array.from({ length: 2_050 }, (_, index) => index);
  await inLots(all, async (index) => {
    const log = logOf(`c${index}`);
    await store.append(log, [entryOf('a', { at: 10 })]);
    const terms = index % 1_000 === 0 ? ['parcel', 'rare'] : index === 7 ? ['other'] : ['parcel'];
    const standing = { seq: 1, rank: index % 2, since: index, cost: 0, spent: 0, owner: '', agents: [] };
    await store.inbox.saveStanding(log, { ...standing, words: terms.join(' '), terms, data: '{}' });
  });
  const read = async (term: string) => {
    const filter = { tenant, terms: [{ term, whole: false }] };
    const { rows } = await store.inbox.standings({ ...filter, order: 'oldest', limit: 9 });
    const { ranks } = await store.inbox.countStandings(filter);
    return { ids: rows.map(({ id }) => id).slice(0, 9), ranks: ranks.slice(0, 2) };
  };
  expect(await read('parcel')).toEqual({
    ids: ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c8', 'c9'],
    ranks: [1_025, 1_024],
  });
  expect(await read('rare')).toEqual({ ids: ['c0', 'c1000', 'c2000'], ranks: [3, 0] });
  await store.close();
});
