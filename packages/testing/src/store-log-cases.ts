import assert from 'node:assert/strict';
import { EventId, type ConversationPage, type ConversationPlace } from './troupe.ts';
import {
  addressOf,
  contents,
  entryOf,
  inLots,
  logOf,
  on,
  rejectsWith,
  type StoreCase,
} from './store-stage.ts';

const LOG = logOf();
const MIB = 1024 * 1024;

/** Texts that a store might misread as its own syntax, cut or replace. */
const HOSTILE = {
  'a dollar and a dot': '$set.a.$[].b',
  'a NUL in the middle': 'before\0after',
  'a lone high surrogate': 'x\ud800y',
  'a lone low surrogate': '\udc00',
  'emoji and combined characters': '👩‍👩‍👧 e\u0301 \u202e',
  'a prototype name': '__proto__',
  'JSON with a prototype name': '{"__proto__":{"polluted":true},"constructor":1}',
  'quotes and a comment': `'"; DROP TABLE events; --`,
  'nothing at all': '',
  'a mebibyte': 'é'.repeat(MIB / 2),
};

const HOSTILE_CASES = Object.entries(HOSTILE).map(([name, content]): StoreCase =>
  on('text', `${name} is unchanged in the log and in an entry`, async ({ store, driver }) => {
    await store.append(LOG, [entryOf('e1', { content })]);
    assert.deepEqual(await contents(store, LOG), [content]);
    const key = { tenant: 'acme', namespace: 'body', key: `k-${content.slice(0, 20)}` } as const;
    await driver.putOnce(key, content, 1);
    assert.equal(await driver.readEntry(key), content);
    assert.equal(await driver.swap(key, content, `${content}!`), true);
    assert.equal(await driver.readEntry(key), `${content}!`);
  }),
);

export const LOG_CASES: readonly StoreCase[] = [
  on('append', 'seqs are dense from 1; events are read as returned', async ({ store }) => {
    const written = await store.append(LOG, [entryOf('e1', { to: ['a', 'b'] }), entryOf('e2')]);
    assert.deepEqual(
      written.map(({ kind, event }) => [kind, event.seq]),
      [
        ['appended', 1],
        ['appended', 2],
      ],
    );
    assert.deepEqual(
      await store.read(LOG, { after: 0 }),
      written.map(({ event }) => event),
    );
    assert.deepEqual(await store.readById(LOG, EventId.parse('e2')), written[1]?.event);
  }),
  on('mark', 'identifies a log up to an event', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { content: 'first' }), entryOf('e2')]);
    const mark = await store.markOf(LOG, 2);
    await store.append(LOG, [entryOf('e3')]);
    assert.equal(await store.markOf(LOG, 2), mark);
    assert.notEqual(await store.markOf(LOG, 3), mark);
    assert.equal(await store.markOf(LOG, 4), null);
    await store.deleteConversation(LOG);
    assert.equal(await store.markOf(LOG, 2), null);
    await store.append(LOG, [entryOf('e1', { content: 'another' }), entryOf('e2')]);
    assert.notEqual(await store.markOf(LOG, 2), mark);
  }),
  on('append', 'a hundred writers at once: a dense log, every event once', async ({ store }) => {
    const writes = Array.from({ length: 100 }, (_, index) => store.append(LOG, [entryOf(`e${index}`)]));
    const seqs = (await Promise.all(writes)).flat().map(({ event }) => event.seq);
    assert.deepEqual(
      seqs.toSorted((a, b) => a - b),
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    const events = await store.read(LOG, { after: 0 });
    assert.deepEqual(
      events.map(({ seq }) => seq),
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    assert.equal(new Set(events.map(({ id }) => id)).size, 100);
  }),
  on('append', 'events of one call keep their order', async ({ store }) => {
    const calls = Array.from({ length: 20 }, (_, index) =>
      store.append(LOG, [entryOf(`${index}-a`), entryOf(`${index}-b`), entryOf(`${index}-c`)]),
    );
    for (const written of await Promise.all(calls)) {
      const seqs = written.map(({ event }) => event.seq);
      assert.deepEqual(
        seqs,
        seqs.toSorted((a, b) => a - b),
      );
    }
    assert.equal(await store.head(LOG), 60);
  }),
  on('append', 'a repetition returns the first event and writes nothing', async ({ store }) => {
    const [first] = await store.append(LOG, [entryOf('e1', { at: 1000 })]);
    await store.append(LOG, [entryOf('e2')]);
    const [again] = await store.append(LOG, [entryOf('e1', { at: 9000 })]);
    assert.deepEqual(again, { kind: 'exists', event: first?.event });
    assert.equal(await store.head(LOG), 2);
  }),
  on('append', 'the same event by fifty writers is stored once', async ({ store }) => {
    const writes = Array.from({ length: 50 }, () => store.append(LOG, [entryOf('same')]));
    const outcomes = (await Promise.all(writes)).flat();
    assert.equal(outcomes.filter(({ kind }) => kind === 'appended').length, 1);
    assert.ok(outcomes.every(({ event }) => event.seq === 1));
    assert.equal(await store.head(LOG), 1);
  }),
  on('append', 'the order of keys in a payload does not matter', async ({ store }) => {
    await store.append(LOG, [entryOf('e1')]);
    const entry = entryOf('e1');
    const draft = { ...entry.draft, author: { name: 'Ada', id: 'ada', kind: 'user' as const } };
    assert.equal((await store.append(LOG, [{ ...entry, draft }]))[0]?.kind, 'exists');
  }),
  on('append', 'a conflict changes nothing; other events are stored', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { content: 'first' })]);
    const error = await rejectsWith(
      'event_conflict',
      store.append(LOG, [entryOf('e0'), entryOf('e1', { content: 'second', to: ['worker'] })]),
    );
    assert.equal(error.data['id'], 'e1');
    assert.equal(error.data['conversation'], 'talk');
    assert.deepEqual(await contents(store, LOG), ['first', 'e0']);
    assert.deepEqual(await store.addressed(addressOf(), { after: 0, upTo: 10 }), []);
  }),
  on('append', 'a duplicate has the seq and hash of the first row', async ({ driver }) => {
    const row = { ...logOf(), id: 'e1', at: 1, kind: 'message', to: [], tokens: 0, turn: null, data: '{}' };
    assert.deepEqual(await driver.append([{ ...row, hash: 'one' }]), [{ kind: 'appended', seq: 1 }]);
    const twice = await driver.append([
      { ...row, hash: 'two' },
      { ...row, id: 'e2', hash: 'x' },
      { ...row, id: 'e2', hash: 'x' },
    ]);
    assert.deepEqual(twice, [
      { kind: 'duplicate', seq: 1, hash: 'one' },
      { kind: 'appended', seq: 2 },
      { kind: 'duplicate', seq: 2, hash: 'x' },
    ]);
  }),
  on('chain', 'links all events of many writers, and begins again after a removal', async ({ store }) => {
    const whole = { unchained: 0, begins: [1], problems: [], problemCount: 0, next: null };
    for (const count of [60, 7]) {
      await inLots(
        Array.from({ length: count }, (_, index) => `e${index}`),
        (id) => store.append(LOG, [entryOf(id), entryOf(`${id}-b`, { to: ['worker'] })]),
      );
      await store.append(LOG, [entryOf('e1')]);
      const { chain, ...found } = await store.verify(LOG);
      assert.match(chain ?? '', /^[\w-]{43}$/);
      assert.deepEqual(found, { ...whole, head: 2 * count, events: 2 * count });
      await store.deleteConversation(LOG);
    }
    assert.deepEqual(await store.verify(LOG), { ...whole, begins: [], head: 0, events: 0, chain: null });
  }),
  on('chain', 'is verified from any place', async ({ store }) => {
    await store.append(
      LOG,
      Array.from({ length: 5 }, (_, index) => entryOf(`e${index}`)),
    );
    const { head, events, begins, problems } = await store.verify(LOG, { after: 3 });
    assert.deepEqual({ head, events, begins, problems }, { head: 5, events: 2, begins: [], problems: [] });
  }),
  on('read', 'a missing conversation is empty', async ({ store }) => {
    assert.equal(await store.head(LOG), 0);
    assert.deepEqual(await store.read(LOG, { after: 0 }), []);
    assert.equal(await store.readById(LOG, EventId.parse('e1')), null);
    assert.deepEqual(await store.addressed(addressOf(), { after: 0, upTo: 10 }), []);
    assert.deepEqual(await store.conversations(LOG.tenant, 10), []);
  }),
  on('read', 'a range excludes its start and includes its end', async ({ store }) => {
    await store.append(
      LOG,
      ['a', 'b', 'c', 'd', 'e'].map((id) => entryOf(id)),
    );
    const seqs = async (range: { after: number; upTo?: number; limit?: number }) =>
      (await store.read(LOG, range)).map(({ seq }) => seq);
    assert.deepEqual(await seqs({ after: 1, upTo: 4 }), [2, 3, 4]);
    assert.deepEqual(await seqs({ after: 1, limit: 2 }), [2, 3]);
    assert.deepEqual(await seqs({ after: 3 }), [4, 5]);
    assert.deepEqual(await seqs({ after: 5 }), []);
    assert.deepEqual(await seqs({ after: 0, limit: 0 }), []);
    assert.deepEqual(await seqs({ after: 4, upTo: 2 }), []);
  }),
  on('read', '`maxBytes` ends with the event that reaches it', async ({ store }) => {
    const contents = ['x'.repeat(1_000), 'x'.repeat(1_000), 'é'.repeat(270_000), 'x'.repeat(1_000), 'end'];
    await store.append(
      LOG,
      contents.map((content, index) => entryOf(`e${index}`, { content })),
    );
    const seqs = async (range: { after: number; upTo?: number; limit?: number; maxBytes: number }) =>
      (await store.read(LOG, range)).map(({ seq }) => seq);
    assert.deepEqual(await seqs({ after: 0, maxBytes: 1 }), [1]);
    assert.deepEqual(await seqs({ after: 0, maxBytes: 1_500 }), [1, 2]);
    assert.deepEqual(await seqs({ after: 0, maxBytes: 500_000 }), [1, 2, 3]);
    assert.deepEqual(await seqs({ after: 2, maxBytes: 500_000 }), [3]);
    assert.deepEqual(await seqs({ after: 3, maxBytes: 500_000 }), [4, 5]);
    assert.deepEqual(await seqs({ after: 0, maxBytes: 10_000_000 }), [1, 2, 3, 4, 5]);
    assert.deepEqual(await seqs({ after: 0, limit: 2, maxBytes: 10_000_000 }), [1, 2]);
    assert.deepEqual(await seqs({ after: 1, upTo: 2, maxBytes: 10_000_000 }), [2]);
    assert.deepEqual(await seqs({ after: 5, maxBytes: 1 }), []);
    const [, , large] = await store.read(LOG, { after: 0, maxBytes: 500_000 });
    assert.ok(large?.kind === 'message' && large.body.content === contents[2]);
  }),
  on('read', 'addressed events are found by whole agent names', async ({ store }) => {
    const to = [['worker'], ['work', 'boss'], ['boss', 'worker'], [], ['worker']];
    await store.append(
      LOG,
      to.map((agents, index) => entryOf(`e${index}`, { to: agents })),
    );
    const worker = addressOf('worker');
    assert.deepEqual(await store.addressed(worker, { after: 0, upTo: 5 }), [1, 3, 5]);
    assert.deepEqual(await store.addressed(worker, { after: 1, upTo: 4 }), [3]);
    assert.deepEqual(await store.addressed(addressOf('boss'), { after: 0, upTo: 5 }), [2, 3]);
    assert.deepEqual(await store.addressed(addressOf('work'), { after: 0, upTo: 5 }), [2]);
    assert.deepEqual(await store.addressed(addressOf('ork'), { after: 0, upTo: 5 }), []);
  }),
  on('read', 'the next read sees a resolved append', async ({ store }) => {
    for (let seq = 1; seq <= 20; seq += 1) {
      await store.append(LOG, [entryOf(`e${seq}`)]);
      assert.equal(await store.head(LOG), seq);
    }
  }),
  on('conversations', 'are listed newest first, if they have events', async ({ store }) => {
    await store.append(logOf('old'), [entryOf('a', { at: 10 }), entryOf('b', { at: 20 })]);
    await store.append(logOf('new'), [entryOf('a', { at: 40 })]);
    await store.append(logOf('mid'), [entryOf('a', { at: 30 })]);
    await store.park(addressOf('worker', 'silent'), 'paused');
    assert.deepEqual(await store.conversations(LOG.tenant, 10), [
      { id: 'new', head: 1, at: 40 },
      { id: 'mid', head: 1, at: 30 },
      { id: 'old', head: 2, at: 20 },
    ]);
    assert.deepEqual(
      (await store.conversations(LOG.tenant, 2)).map(({ id }) => id),
      ['new', 'mid'],
    );
  }),
  on('conversations', 'continue on the next page; equal times by id', async ({ store, driver }) => {
    const ids = Array.from({ length: 7 }, (_, index) => `room-${index}`);
    // Pairs with the same time.
    for (const [index, id] of ids.entries())
      await store.append(logOf(id), [entryOf('a', { at: 10 * Math.floor(index / 2) })]);
    const found: string[] = [];
    for (let before: ConversationPlace | null = { at: 1_000, id: '' }; before;) {
      const query = { tenant: LOG.tenant, limit: 2, before };
      const { rows, next }: ConversationPage = await driver.conversations(query);
      found.push(...rows.map(({ id }) => id));
      before = next;
    }
    assert.deepEqual(found, ids.toReversed());
  }),
  on('conversations', 'are listed by ranges of ids, without deleted ones', async ({ store, driver }) => {
    for (const [at, id] of ['a', 'team', 'team-1', 'team-2', 'teams', 'z'].entries())
      await store.append(logOf(id), [entryOf('x', { at })]);
    const list = async (ranges: { from: string; to: string }[], limit = 9) => {
      const page = await driver.conversations({ tenant: LOG.tenant, limit, ranges });
      return page.rows.map(({ id }) => id);
    };
    assert.deepEqual(await list([{ from: 'team-', to: 'team-~' }]), ['team-2', 'team-1']);
    assert.deepEqual(await list([{ from: 'team-', to: 'team-~' }], 1), ['team-2']);
    assert.deepEqual(
      await list([
        { from: 'a', to: 'a!' },
        { from: 'team', to: 'team!' },
      ]),
      ['team', 'a'],
    );
    assert.deepEqual(await list([]), []);
    await store.deleteConversation(logOf('team-2'));
    assert.deepEqual(await list([{ from: 'team-', to: 'team-~' }]), ['team-1']);
    // A conversation that begins again has the place of its new event.
    await store.append(logOf('team-2'), [entryOf('x', { at: 1 })]);
    assert.deepEqual(await list([{ from: 'team-', to: 'team-~' }]), ['team-1', 'team-2']);
  }),
  on('conversations', 'outside of the ranges cost nothing', async ({ store, driver }) => {
    for (let index = 0; index < 60; index += 1)
      await store.append(logOf(`room-${index}`), [entryOf('x', { at: index })]);
    await store.append(logOf('mine'), [entryOf('x', { at: 0 })]);
    const ranges = [{ from: 'mine', to: 'mine~' }];
    const page = await driver.conversations({ tenant: LOG.tenant, limit: 50, ranges });
    assert.deepEqual(page.rows, [{ id: 'mine', head: 1, at: 0 }]);
    assert.equal(page.next, null);
    assert.ok(page.looked <= 1, `${page.looked} entries were scanned`);
    const first = await driver.conversations({ tenant: LOG.tenant, limit: 5 });
    assert.equal(first.rows.length, 5);
    assert.ok(first.looked <= 6, `${first.looked} entries were scanned`);
  }),
  on('tenants', 'share nothing, even with equal ids', async ({ store }) => {
    const other = logOf('talk', 'globex');
    await store.append(LOG, [entryOf('e1', { content: 'ours', to: ['worker'] })]);
    await store.append(other, [entryOf('e0'), entryOf('e1', { content: 'theirs' })]);
    assert.deepEqual(await contents(store, LOG), ['ours']);
    assert.deepEqual(await contents(store, other), ['e0', 'theirs']);
    assert.deepEqual(await store.addressed(addressOf('worker', 'talk', 'globex'), { after: 0, upTo: 9 }), []);
    assert.equal((await store.conversations(other.tenant, 9))[0]?.head, 2);
    await store.park(addressOf(), 'paused');
    assert.equal(await store.readActor(addressOf('worker', 'talk', 'globex')), null);
    await store.putBody(LOG.tenant, 'h', 'ours', 1);
    assert.equal(await store.readBody(other.tenant, 'h'), null);
  }),
  on('tenants', 'and conversations are not joined ambiguously', async ({ store }) => {
    await store.append(logOf('b.c', 'a'), [entryOf('e1')]);
    await store.append(logOf('c', 'a.b'), [entryOf('e1', { content: 'other' })]);
    assert.deepEqual(await contents(store, logOf('b.c', 'a')), ['e1']);
    assert.deepEqual(await contents(store, logOf('c', 'a.b')), ['other']);
  }),
  ...HOSTILE_CASES,
];
