import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beginningsOf, wordQuery, wordsOf } from '../src/library/projection/search-words.ts';
import type { NewEventRow, StoreDriver } from '../src/store/driver.ts';
import { openMongoDriver } from '../src/store/mongo/connect-mongo.ts';
import { openSqliteDriver } from '../src/store/sqlite/sqlite-driver.ts';

/**
 * The index of words with many conversations: the time of one page of a search, and of a page and the counts of the inbox
 * filtered by text, with the index and without. CPU is this process's: for SQLite, how long the event loop is held.
 *
 * npm run bench:search -- [conversations]        SQLite, and MongoDB if MONGODB_URL is set
 */
const CONVERSATIONS = Number(process.argv[2] ?? 100_000);
const TENANT = 'acme';
const LOT = 2_000;
const ROUNDS = 5;
const WORDS = Array.from(
  { length: 5_000 },
  (_, index) => `${'bcdfghklmnprstvw'[index % 16]}o${index.toString(36)}word`,
);

/** About 60 words, one in all texts, one in a thousandth of them, one in a single one. */
function textOf(index: number): string {
  const some = Array.from({ length: 55 }, (_, word) => WORDS[(index * 31 + word * word * 17) % WORDS.length]);
  if (index % 1_000 === 0) some.push('seldom');
  if (index === Math.floor(CONVERSATIONS / 3)) some.push('needle');
  return `please ship parcel ${index}: ${some.join(' ')}`;
}

async function fill(driver: StoreDriver): Promise<void> {
  const from = 1_700_000_000_000;
  for (let done = 0; done < CONVERSATIONS; done += LOT) {
    const lot = Array.from({ length: Math.min(LOT, CONVERSATIONS - done) }, (_, index) => done + index);
    const rows: NewEventRow[] = lot.map((index) => ({
      tenant: TENANT,
      conversation: `room-${index}`,
      id: 'e1',
      at: from + index * 1_000,
      kind: 'message',
      to: [],
      hash: '',
      tokens: 25,
      turn: null,
      data: JSON.stringify({ body: { content: textOf(index) } }),
    }));
    await driver.append(rows);
    await Promise.all(
      rows.map(async ({ conversation, at }, place) => {
        const words = `${conversation} ${textOf(lot[place]!)}`;
        const terms = [...new Set(wordsOf(words))];
        const log = { tenant: TENANT, conversation };
        await driver.inbox.savePassages(log, [
          { first: 1, last: 1, at, terms: [...terms, `=${conversation}`] },
        ]);
        const standing = { seq: 1, rank: at % 5, since: at, cost: 0, spent: 0, owner: 'ana', agents: ['a'] };
        await driver.inbox.saveStanding(log, { ...standing, words, terms, data: '{}' });
      }),
    );
  }
}

async function measure(name: string, work: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  const cpus: number[] = [];
  let found: unknown;
  for (let round = 0; round <= ROUNDS; round += 1) {
    const [began, before] = [performance.now(), process.cpuUsage()];
    found = await work();
    const { user, system } = process.cpuUsage(before);
    // The first one fills caches.
    if (round > 0) times.push(performance.now() - began);
    if (round > 0) cpus.push((user + system) / 1_000);
  }
  console.log(`${name} | ${medianOf(times)} | ${medianOf(cpus)} | ${String(found)}`);
}

function medianOf(values: readonly number[]): string {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!.toFixed(1);
}

async function measureAll(driver: StoreDriver): Promise<void> {
  console.log('what | median ms | median CPU ms | found');
  for (const q of ['needle', 'seldom', 'parcel', 'ship parcel', 'par', 'par room', 'nowhere'])
    await measure(`search "${q}"`, async () => {
      const { terms } = wordQuery(q);
      return (await driver.inbox.findPassages({ tenant: TENANT, terms, limit: 25 })).length;
    });
  for (const text of ['needle', 'seldom', 'parcel', 'nowhere'])
    for (const [name, filter] of [
      ['without the index', { text }],
      ['with the index', { terms: beginningsOf(text) }],
    ] as const)
      await measure(`inbox "${text}" ${name}`, async () => {
        const page = await driver.inbox.standings({ tenant: TENANT, order: 'urgent', limit: 50, ...filter });
        const { ranks } = await driver.inbox.countStandings({ tenant: TENANT, ...filter });
        return `${page.rows.length} of ${ranks.reduce((sum, count) => sum + count, 0)}`;
      });
}

async function run(name: string, open: () => Promise<StoreDriver>): Promise<void> {
  const driver = await open();
  try {
    const [began, before] = [performance.now(), process.cpuUsage()];
    await fill(driver);
    const { user, system } = process.cpuUsage(before);
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    console.log(
      `${name}: ${CONVERSATIONS} conversations in ${seconds} s, ${((user + system) / 1e6).toFixed(0)} s CPU`,
    );
    await measureAll(driver);
  } finally {
    await driver.close();
  }
}

const dir = await mkdtemp(join(tmpdir(), 'troupe-search-'));
try {
  await run('SQLite', () => openSqliteDriver({ path: join(dir, 'troupe.db') }));
  const url = process.env['MONGODB_URL'];
  if (url) await run('MongoDB', () => openMongoDriver({ url, database: `bench_search_${process.pid}` }));
} finally {
  await rm(dir, { recursive: true, force: true });
}
