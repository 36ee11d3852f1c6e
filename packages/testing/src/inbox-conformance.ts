import assert from 'node:assert/strict';
import type {
  StoreDriver,
  Store,
  NewStanding,
  StandingFilter,
  StandingOrder,
  StandingPlace,
  StandingRow,
} from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';
import { PASSAGE_CASES } from './store-passage-cases.ts';
import { entryOf, inLots, logOf, on, type StoreCase } from './store-stage.ts';

/** The contract of the inbox of a store. `open` returns the driver of a new, empty store. */
export function inboxConformance(open: () => Promise<StoreDriver>): ConformanceCase[] {
  return [...STANDING_CASES, ...PASSAGE_CASES].map((each) => each(open));
}

const { tenant } = logOf();

function standingOf(change: Partial<NewStanding> = {}): NewStanding {
  return {
    seq: 1,
    rank: 0,
    since: 10,
    cost: 0,
    spent: 0,
    owner: 'ada',
    agents: ['worker'],
    words: '',
    terms: [],
    data: '{}',
    ...change,
  };
}

/** Stores conversations of one event each, with their states. */
async function place(store: Store, standings: Record<string, Partial<NewStanding>>): Promise<void> {
  await inLots(Object.entries(standings), async ([id, change]) => {
    await store.append(logOf(id), [entryOf('a', { at: 10 })]);
    await store.inbox.saveStanding(logOf(id), standingOf(change));
  });
}

async function ids(
  store: Store,
  filter: Omit<StandingFilter, 'tenant'> = {},
  order: StandingOrder = 'newest',
): Promise<string[]> {
  const { rows } = await store.inbox.standings({ tenant, order, limit: 50, ...filter });
  return rows.map(({ id }) => id);
}

const STANDING_CASES: readonly StoreCase[] = [
  on('standings', 'and passages are forgotten on request, and stored again', async ({ store }) => {
    await place(store, { one: { words: 'blue' }, two: { words: 'red' } });
    const passage = { first: 1, last: 1, at: 10, terms: ['blue'] };
    await store.inbox.savePassages(logOf('one'), [passage]);
    const found = () =>
      store.inbox.findPassages({ tenant, terms: [{ term: 'blue', whole: true }], limit: 9 });
    assert.equal((await found()).length, 1);
    await store.inbox.forget(logOf('one'));
    await store.inbox.forget(logOf('nowhere'));
    assert.deepEqual([await ids(store), await found()], [['two'], []]);
    assert.equal(await store.inbox.standingSeq(logOf('one')), 0);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), ['one']);
    await store.inbox.saveStanding(logOf('one'), standingOf({ seq: 1 }));
    await store.inbox.savePassages(logOf('one'), [passage]);
    assert.deepEqual([(await ids(store)).toSorted(), (await found()).length], [['one', 'two'], 1]);
  }),
  on('standings', 'are behind after every event until one of that seq is stored', async ({ store }) => {
    await store.append(logOf('old'), [entryOf('a', { at: 10 })]);
    await store.append(logOf('new'), [entryOf('a', { at: 20 }), entryOf('b', { at: 30 })]);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), ['new', 'old']);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 1 }), ['new']);
    assert.deepEqual(await ids(store), []);
    await store.inbox.saveStanding(logOf('new'), standingOf({ seq: 1 }));
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), ['new', 'old']);
    await store.inbox.saveStanding(logOf('new'), standingOf({ seq: 2, data: '{"text":"\\ud800"}' }));
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), ['old']);
    const { terms: _, ...stored } = standingOf({ seq: 2, data: '{"text":"\\ud800"}' });
    assert.equal(await store.inbox.standingSeq(logOf('new')), 2);
    assert.equal(await store.inbox.standingSeq(logOf('old')), 0);
    assert.deepEqual((await store.inbox.standings({ tenant, order: 'newest', limit: 9 })).rows, [
      { ...stored, id: 'new', head: 2, at: 30 },
    ]);
    await store.append(logOf('new'), [entryOf('c', { at: 40 })]);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), ['new', 'old']);
    assert.equal((await store.inbox.countStandings({ tenant })).behind, 2);
  }),
  on('standings', 'never go back to an earlier seq', async ({ store }) => {
    await store.append(logOf(), [entryOf('a'), entryOf('b'), entryOf('c')]);
    await store.inbox.saveStanding(logOf(), standingOf({ seq: 3, rank: 4 }));
    await store.inbox.saveStanding(logOf(), standingOf({ seq: 2, rank: 1 }));
    assert.deepEqual(await ids(store, { ranks: [1] }), []);
    assert.deepEqual(await ids(store, { ranks: [4] }), ['talk']);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), []);
  }),
  on('standings', 'are filtered and counted', async ({ store }) => {
    await place(store, {
      a: {
        rank: 4,
        since: 10,
        agents: ['worker', 'boss'],
        owner: 'ada',
        words: 'a ship the parcel',
        terms: ['a', 'ship', 'the', 'parcel'],
      },
      b: { rank: 4, since: 20, agents: ['work'], owner: 'bob', words: 'b 100% (sure)' },
      c: { rank: 0, since: 30, agents: [], owner: '', words: 'c' },
    });
    const cases: [Omit<StandingFilter, 'tenant'>, string[]][] = [
      [{}, ['c', 'b', 'a']],
      [{ ranks: [4] }, ['b', 'a']],
      [{ ranks: [0, 4] }, ['c', 'b', 'a']],
      [{ ranks: [] }, []],
      [{ agent: 'work' }, ['b']],
      [{ agent: 'boss', ranks: [0] }, []],
      [{ owner: 'ada' }, ['a']],
      [{ from: 20 }, ['c', 'b']],
      [{ from: 20, to: 30 }, ['b']],
      [{ text: 'the par' }, ['a']],
      [{ text: '% (s' }, ['b']],
      [{ text: '.*' }, []],
      [{ terms: [{ term: 'par', whole: false }] }, ['a']],
      [{ terms: [{ term: 'par', whole: true }] }, []],
      [
        {
          terms: [
            { term: 'par', whole: false },
            { term: 'ship', whole: true },
          ],
          text: 'the par',
        },
        ['a'],
      ],
      [{ ranges: [{ from: 'b', to: 'c' }] }, ['b']],
      [{ ranges: [] }, []],
    ];
    for (const [filter, expected] of cases) {
      assert.deepEqual(await ids(store, filter), expected, JSON.stringify(filter));
      const { ranks } = await store.inbox.countStandings({ tenant, ...filter });
      const sum = ranks.reduce((all, count) => all + count, 0);
      assert.equal(sum, expected.length, JSON.stringify(filter));
    }
    const { ranks } = await store.inbox.countStandings({ tenant });
    assert.deepEqual([ranks[4], ranks[0]], [2, 1]);
  }),
  on('standings', 'are in pages of each order, and changes elsewhere move none', async ({ store }) => {
    const many = Array.from({ length: 23 }, (_, index) => index);
    await place(
      store,
      Object.fromEntries(
        many.map((index) => [
          `room-${index}`,
          { rank: index % 3, since: index % 5, cost: Math.floor(index / 2), spent: (index * 7) % 23 },
        ]),
      ),
    );
    const keys: Record<StandingOrder, (row: StandingRow) => number> = {
      urgent: ({ rank, since }) => -(rank * 100 + since),
      newest: ({ since }) => -since,
      oldest: ({ since }) => since,
      costliest: ({ cost }) => -cost,
      mostSpent: ({ spent }) => -spent,
    };
    for (const order of Object.keys(keys) as StandingOrder[]) {
      const found: string[] = [];
      const values: number[] = [];
      let after: StandingPlace | null = null;
      do {
        const page: Awaited<ReturnType<Store['inbox']['standings']>> = await store.inbox.standings({
          tenant,
          order,
          limit: 5,
          ...(after && { after }),
        });
        found.push(...page.rows.map(({ id }) => id));
        values.push(...page.rows.map(keys[order]));
        after = page.next;
        await place(store, {
          [`late-${found.length}-${order}`]: { rank: 9, since: -1, cost: 1_000, spent: 1_000 },
        });
      } while (after);
      const rooms = found.filter((id) => id.startsWith('room-'));
      assert.deepEqual(rooms.toSorted(), many.map((index) => `room-${index}`).toSorted(), order);
      assert.deepEqual(
        values,
        values.toSorted((a, b) => a - b),
        order,
      );
    }
  }),
  on('standings', 'vanish with their conversation, and none creates one', async ({ store }) => {
    await store.inbox.saveStanding(logOf('ghost'), standingOf());
    await place(store, { gone: { rank: 4 }, stays: { rank: 4 } });
    await store.deleteConversation(logOf('gone'));
    assert.deepEqual(await ids(store), ['stays']);
    assert.equal((await store.inbox.countStandings({ tenant })).ranks[4], 1);
    await store.append(logOf('gone'), [entryOf('b')]);
    assert.deepEqual(await ids(store), ['stays']);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), ['gone']);
  }),
  on('standings', 'of other tenants are not seen', async ({ store }) => {
    await place(store, { a: {} });
    const other = logOf('b', 'globex');
    await store.append(other, [entryOf('a')]);
    assert.deepEqual(await store.inbox.behind({ tenant, limit: 9 }), []);
    await store.inbox.saveStanding(other, standingOf({ rank: 4 }));
    assert.deepEqual(await ids(store), ['a']);
    assert.equal((await store.inbox.countStandings({ tenant: other.tenant })).ranks[4], 1);
    assert.equal((await store.inbox.countStandings({ tenant })).ranks[4], 0);
  }),
];
