import assert from 'node:assert/strict';
import type { Passage, PassagesQuery, TermCondition, Store } from './troupe.ts';
import { entryOf, inLots, logOf, on, type StoreCase } from './store-stage.ts';

const { tenant } = logOf();

function passageOf(terms: readonly string[], change: Partial<Passage> = {}): Passage {
  return { first: 1, last: 1, at: 10, terms, ...change };
}

/** Stores conversations of one event each, with a passage. */
async function place(store: Store, passages: Record<string, Passage>): Promise<void> {
  await inLots(Object.entries(passages), async ([id, passage]) => {
    await store.append(logOf(id), [entryOf('a', { at: 10 })]);
    await store.inbox.savePassages(logOf(id), [passage]);
  });
}

const whole = (term: string): TermCondition => ({ term, whole: true });
const begins = (term: string): TermCondition => ({ term, whole: false });

async function ids(
  store: Store,
  terms: readonly TermCondition[],
  query: Partial<PassagesQuery> = {},
): Promise<string[]> {
  const found = await store.inbox.findPassages({ tenant, terms, limit: 50, ...query });
  return found.map(({ id }) => id);
}

export const PASSAGE_CASES: readonly StoreCase[] = [
  on('passages', 'are found by terms and their beginnings, the newest first', async ({ store }) => {
    await place(store, {
      a: passageOf(['ship', 'the', 'parcel', '@worker'], { at: 30_000 }),
      b: passageOf(['shipped', 'größe', '貨'], { at: 10_000 }),
      c: passageOf(['a.b-c:d', '=c', 'shi'], { at: 20_000 }),
    });
    const cases: [TermCondition[], string[], Partial<PassagesQuery>?][] = [
      [[begins('ship')], ['a', 'b']],
      [[whole('ship')], ['a']],
      [[begins('shi')], ['a', 'c', 'b']],
      [[begins('ship'), whole('@worker')], ['a']],
      [[begins('ship'), begins('grö')], ['b']],
      [[whole('貨')], ['b']],
      [[whole('=c')], ['c']],
      [[begins('a.b-c')], ['c']],
      [[begins('axb')], []],
      [[begins('parcels')], []],
      [[begins('shi')], ['a', 'c'], { from: 20_000 }],
      [[begins('shi')], ['b'], { ranges: [{ from: 'b', to: 'c' }] }],
      [[begins('shi')], [], { ranges: [] }],
    ];
    for (const [terms, expected, query] of cases)
      assert.deepEqual(await ids(store, terms, query), expected, JSON.stringify(terms));
    const [found] = await store.inbox.findPassages({ tenant, terms: [whole('ship')], limit: 1 });
    assert.deepEqual({ ...found, place: '' }, { id: 'a', first: 1, last: 1, at: 30_000, place: '' });
  }),
  on('passages', 'are in pages, each once, whatever their times', async ({ store }) => {
    const names = Array.from({ length: 17 }, (_, index) => `room-${index}`);
    await place(
      store,
      Object.fromEntries(
        names.map((name, index) => [name, passageOf(['word'], { at: 5_000 * Math.floor(index / 4) })]),
      ),
    );
    const found: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await store.inbox.findPassages({
        tenant,
        terms: [begins('wor')],
        limit: 5,
        ...(after !== undefined && { after }),
      });
      found.push(...page.map(({ id }) => id));
      after = page.at(-1)?.place;
      if (page.length < 5) break;
    }
    assert.deepEqual(found.toSorted(), names.toSorted());
  }),
  on('passages', 'are replaced by longer ones only', async ({ store }) => {
    await store.append(logOf(), [entryOf('a'), entryOf('b')]);
    await store.inbox.savePassages(logOf(), [passageOf(['one'], { last: 1 })]);
    await store.inbox.savePassages(logOf(), [passageOf(['one', 'two'], { last: 2, at: 20 })]);
    await store.inbox.savePassages(logOf(), [passageOf(['one'], { last: 1 })]);
    assert.deepEqual(await ids(store, [whole('two')]), ['talk']);
    assert.deepEqual(await ids(store, [whole('one')]), ['talk']);
  }),
  on('passages', 'vanish with their conversation, and none creates one', async ({ store }) => {
    await store.inbox.savePassages(logOf('ghost'), [passageOf(['word'])]);
    await place(store, { gone: passageOf(['word']), stays: passageOf(['word']) });
    await store.deleteConversation(logOf('gone'));
    assert.deepEqual(await ids(store, [whole('word')]), ['stays']);
    await store.append(logOf('gone'), [entryOf('b')]);
    assert.deepEqual(await ids(store, [whole('word')]), ['stays']);
  }),
  on('passages', 'of other tenants are not seen', async ({ store }) => {
    await place(store, { a: passageOf(['word']) });
    const other = logOf('b', 'globex');
    await store.append(other, [entryOf('a')]);
    await store.inbox.savePassages(other, [passageOf(['word'])]);
    assert.deepEqual(await ids(store, [begins('word')]), ['a']);
    assert.deepEqual(await ids(store, [begins('word')], { tenant: other.tenant }), ['b']);
  }),
];
