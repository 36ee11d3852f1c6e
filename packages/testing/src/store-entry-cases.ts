import assert from 'node:assert/strict';
import { type Store, turnId } from './troupe.ts';
import { addressOf, inLots, logOf, on, rejectsWith, type StoreCase } from './store-stage.ts';

const LOG = logOf();
const { tenant } = LOG;
const KEY = { tenant: 'acme', namespace: 'journal', key: 'k' } as const;

export const RECEIPT: Parameters<Store['putReceipt']>[1] = {
  turn: turnId(addressOf(), 1),
  step: 1,
  conversation: LOG.conversation,
  agent: addressOf().agent,
  provider: 'scripted',
  model: 'm',
  mode: 'full',
  upTo: 3,
  layers: [{ name: 'rules', stability: 'epoch', tokens: 5, hash: 'h', source: 'config' }],
  count: 2,
  chain: 'c',
  tokens: {
    total: 5,
    window: 100,
    reserved: 10,
    free: 85,
    estimate: 6,
    calibrated: false,
    percent: 6,
    level: 'normal',
  },
  breakpoints: [0],
  cuts: [],
  cursor: { before: null, after: 2 },
};

export const ENTRY_CASES: readonly StoreCase[] = [
  on('entry', 'the first of fifty writers wins, all receive its data', async ({ driver }) => {
    const writes = Array.from({ length: 50 }, (_, index) => driver.putOnce(KEY, `d${index}`, 1));
    const outcomes = await Promise.all(writes);
    assert.equal(outcomes.filter(({ inserted }) => inserted).length, 1);
    const winner = outcomes.find(({ inserted }) => inserted)?.data;
    assert.ok(outcomes.every(({ data }) => data === winner));
    assert.equal(await driver.readEntry(KEY), winner);
  }),
  on('entry', 'tenant, namespace and key identify it', async ({ driver }) => {
    await driver.putOnce(KEY, 'one', 1);
    assert.equal(await driver.readEntry({ ...KEY, tenant: 'globex' }), null);
    assert.equal(await driver.readEntry({ ...KEY, namespace: 'effect' }), null);
    assert.equal(await driver.readEntry({ ...KEY, key: 'K' }), null);
    assert.equal((await driver.putOnce({ ...KEY, namespace: 'effect' }, 'two', 1)).inserted, true);
  }),
  on('entry', 'a key may be any text', async ({ driver }) => {
    const names = ['$where', 'a.b', '__proto__', 'x\0y', 'x', '\ud800', '\ud801', ' ', '😀'];
    for (const key of names) {
      assert.equal(
        (await driver.putOnce({ ...KEY, key }, `of ${key}`, 1)).inserted,
        true,
        JSON.stringify(key),
      );
    }
    for (const key of names) assert.equal(await driver.readEntry({ ...KEY, key }), `of ${key}`);
  }),
  on('swap', 'replaces only the expected value', async ({ driver }) => {
    assert.equal(await driver.swap(KEY, 'a', 'b'), false);
    assert.equal(await driver.readEntry(KEY), null);
    await driver.putOnce(KEY, 'a', 1);
    assert.equal(await driver.swap(KEY, 'A', 'b'), false);
    assert.equal(await driver.swap(KEY, 'a', 'b'), true);
    assert.equal(await driver.swap(KEY, 'a', 'c'), false);
    assert.equal(await driver.readEntry(KEY), 'b');
  }),
  on('swap', 'by twenty at once succeeds once', async ({ driver }) => {
    await driver.putOnce(KEY, 'a', 1);
    const swaps = Array.from({ length: 20 }, (_, index) => driver.swap(KEY, 'a', `b${index}`));
    assert.equal((await Promise.all(swaps)).filter(Boolean).length, 1);
  }),
  on('expire', 'removes and counts old entries of one namespace', async ({ driver }) => {
    await inLots([...Array(1200).keys()], (index) =>
      driver.putOnce({ tenant: 'acme', namespace: 'effect', key: `p${index}` }, 'x', index),
    );
    await driver.putOnce(KEY, 'kept', 1);
    assert.equal(await driver.expire('effect', 1100), 1100);
    assert.equal(await driver.expire('effect', 1100), 0);
    assert.equal(await driver.readEntry({ tenant: 'acme', namespace: 'effect', key: 'p1099' }), null);
    assert.equal(await driver.readEntry({ tenant: 'acme', namespace: 'effect', key: 'p1100' }), 'x');
    assert.equal(await driver.readEntry(KEY), 'kept');
  }),
  on('journal', 'returns the data stored first', async ({ store }) => {
    assert.equal(await store.readJournal(tenant, 't:1'), null);
    assert.equal(await store.journal(tenant, 't:1', 'first', 1), 'first');
    assert.equal(await store.journal(tenant, 't:1', 'second', 2), 'first');
    assert.equal(await store.readJournal(tenant, 't:1'), 'first');
  }),
  on('effect', 'belongs to the first that starts it', async ({ store }) => {
    const starts = Array.from({ length: 20 }, (_, index) =>
      store.startEffect(tenant, 'fx', { argsHash: 'h', by: `w${index}`, at: 1 }),
    );
    const outcomes = await Promise.all(starts);
    const mine = outcomes.filter((each) => each.mine);
    assert.equal(mine.length, 1);
    for (const { record } of outcomes) assert.deepEqual(record, mine[0]?.record);
  }),
  on('effect', 'is settled once; later callers receive the result', async ({ store }) => {
    const { stored } = await store.startEffect(tenant, 'fx', { argsHash: 'h', by: 'w', at: 1 });
    const done = { status: 'settled', argsHash: 'h', by: 'w', outcome: 'done', data: 'out' };
    assert.deepEqual(await store.settleEffect(tenant, 'fx', stored, { outcome: 'done', data: 'out' }), done);
    assert.deepEqual(await store.settleEffect(tenant, 'fx', stored, { outcome: 'lost', data: '' }), done);
    const again = await store.startEffect(tenant, 'fx', { argsHash: 'h', by: 'x', at: 2 });
    assert.deepEqual([again.mine, again.record], [false, done]);
  }),
  on('effect', 'settled by twenty at once has one result', async ({ store }) => {
    const { stored } = await store.startEffect(tenant, 'fx', { argsHash: 'h', by: 'w', at: 1 });
    const ends = Array.from({ length: 20 }, (_, index) =>
      store.settleEffect(tenant, 'fx', stored, { outcome: 'done', data: `d${index}` }),
    );
    const records = await Promise.all(ends);
    for (const record of records) assert.deepEqual(record, records[0]);
  }),
  on('effect', 'cannot be settled before its start', async ({ store }) => {
    const { stored } = await store.startEffect(tenant, 'other', { argsHash: 'h', by: 'w', at: 1 });
    const early = store.settleEffect(tenant, 'fx', stored, { outcome: 'done', data: '' });
    await rejectsWith('internal', early);
  }),
  on('artifact', 'belongs to its conversation and never changes', async ({ store }) => {
    await store.putArtifact(LOG, 'a1', 'out\0put', 1);
    await store.putArtifact(LOG, 'a1', 'other', 2);
    assert.equal(await store.readArtifact(LOG, 'a1'), 'out\0put');
    assert.equal(await store.readArtifact(logOf('else'), 'a1'), null);
  }),
  on('derived', 'data of many megabytes is kept to the code unit, and removed', async ({ store }) => {
    const large = `${'ä line of text, '.repeat(300_000)}\ud800`;
    await store.putDerived(LOG, 'large/1', large, 1);
    await store.putDerived(LOG, 'large/2', `${large}2`, 1);
    assert.deepEqual(await store.readDerived(LOG, ['large/2', 'large/1']), [`${large}2`, large]);
    await store.removeDerived(LOG, ['large/1']);
    assert.deepEqual(await store.readDerived(LOG, ['large/1', 'large/2']), [null, `${large}2`]);
  }),
  on('derived', 'data is written once, read and listed by its keys, and removed', async ({ store }) => {
    const put = (log: typeof LOG, key: string) => store.putDerived(log, key, `of ${key}`, 1);
    const keys = Array.from({ length: 1_100 }, (_, index) => `index/${String(index).padStart(4, '0')}`);
    await inLots(keys, (key) => put(LOG, key));
    await inLots(['indexed', 'view/1', 'i'], (key) => put(LOG, key));
    await put(logOf('else'), 'index/else');
    await store.putDerived(LOG, 'view/1', 'later', 2);
    assert.deepEqual(await store.derivedKeys(LOG, 'index/'), keys);
    assert.deepEqual(await store.derivedKeys(LOG, 'index/1'), keys.slice(1_000));
    assert.deepEqual(await store.readDerived(LOG, ['view/1', 'none', 'i', 'index/else']), [
      'of view/1',
      null,
      'of i',
      null,
    ]);
    await store.removeDerived(LOG, [...keys, 'never']);
    assert.deepEqual(await store.derivedKeys(LOG, ''), ['i', 'indexed', 'view/1']);
    assert.deepEqual(await store.readDerived(LOG, ['index/0001']), [null]);
    assert.deepEqual(await store.derivedKeys(logOf('else'), ''), ['index/else']);
  }),
  on('receipt', 'reads back by turn and step', async ({ store }) => {
    await store.putReceipt(tenant, RECEIPT, 1);
    await store.putReceipt(tenant, { ...RECEIPT, step: 2, count: 9 }, 1);
    assert.deepEqual(await store.readReceipt(tenant, RECEIPT.turn!, 1), RECEIPT);
    assert.equal((await store.readReceipt(tenant, RECEIPT.turn!, 2))?.count, 9);
    assert.equal(await store.readReceipt(tenant, RECEIPT.turn!, 3), null);
  }),
  on('receipt', 'that is unreadable is an error, not missing', async ({ store, driver }) => {
    const key = { tenant: 'acme', namespace: 'prompt', key: `${RECEIPT.turn}:1` } as const;
    await driver.putOnce(key, '{"turn":1}', 1);
    await rejectsWith('store_corrupt', store.readReceipt(tenant, RECEIPT.turn!, 1));
  }),
  on('body', 'is stored once under its hash', async ({ store }) => {
    await store.putBody(tenant, 'h1', 'text', 1);
    await store.putBody(tenant, 'h1', 'text', 2);
    assert.equal(await store.readBody(tenant, 'h1'), 'text');
    assert.equal(await store.readBody(tenant, 'h2'), null);
  }),
  on('key-value', 'is written if absent or unchanged', async ({ store }) => {
    assert.equal(await store.get(tenant, 'n'), null);
    assert.equal(await store.compareAndSet(tenant, 'n', null, 'one'), 'one');
    assert.equal(await store.compareAndSet(tenant, 'n', null, 'two'), 'one');
    assert.equal(await store.compareAndSet(tenant, 'n', 'zero', 'two'), 'one');
    assert.equal(await store.compareAndSet(tenant, 'n', 'one', 'two'), 'two');
    assert.equal(await store.get(tenant, 'n'), 'two');
    assert.equal(await store.compareAndSet(tenant, 'gone', 'seen', 'new'), 'new');
    assert.equal(await store.get('globex' as typeof tenant, 'n'), null);
  }),
  on('key-value', 'of twenty concurrent writers: one wins, all receive its value', async ({ store }) => {
    await store.compareAndSet(tenant, 'n', null, 'start');
    const writes = Array.from({ length: 20 }, (_, index) =>
      store.compareAndSet(tenant, 'n', 'start', `from ${index}`),
    );
    const told = await Promise.all(writes);
    const stored = await store.get(tenant, 'n');
    assert.notEqual(stored, 'start');
    for (const each of told) assert.equal(each, stored);
  }),
  on('meta', 'is written once, for all tenants', async ({ store }) => {
    assert.equal(await store.meta('secret', 'one'), 'one');
    assert.equal(await store.meta('secret', 'two'), 'one');
  }),
  on('close', 'finishes earlier calls and refuses later ones', async ({ store }) => {
    const before = store.journal(tenant, 'k', 'd', 1);
    await store.close();
    assert.equal(await before, 'd');
    await rejectsWith('store_unavailable', store.journal(tenant, 'k2', 'd', 1));
    await rejectsWith('store_unavailable', store.readJournal(tenant, 'k'));
  }),
];
