import assert from 'node:assert/strict';
import {
  type StoreDriver,
  turnId,
  type ConversationKey,
  type Store,
  EventId,
  type ConversationPage,
  type ConversationPlace,
  ACTOR_VERSION,
  newActorRecord,
  type ActorRecord,
  type RecordEvent,
  type RecordStep,
  type StepEvents,
  type Stepped,
} from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';
import {
  acquired,
  addressOf,
  contents,
  draftOf,
  entryOf,
  inLots,
  logOf,
  pinned,
  on,
  type StoreCase,
  timerOf,
  rejectsWith,
  pinOf,
} from './store-stage.ts';

/** The contract of a store, except for its inbox (`inbox-conformance.ts`). `open` returns the driver of a new, empty store. */
export function storeConformance(open: () => Promise<StoreDriver>): ConformanceCase[] {
  const cases = [...LOG_CASES, ...ACTOR_CASES, ...STEP_CASES, ...DUE_CASES, ...ENTRY_CASES, ...DELETE_CASES];
  return cases.map((each) => each(open));
}

const LOG = logOf();
const WORKER = addressOf();

/** Writes everything that one agent can leave in a conversation. */
async function fill(store: Store, log: ConversationKey, agent = 'worker'): Promise<void> {
  const { tenant, conversation } = log;
  const address = addressOf(agent, conversation, tenant);
  const turn = turnId(address, 1);
  await store.append(log, [entryOf('e1', { to: [agent] }), entryOf('e2', { to: ['boss', agent] })]);
  await store.append(log, [entryOf('e3')]);
  const record = await pinned(store, address);
  await store.update(record, { state: { timers: [timerOf(5000)] } });
  await store.park(addressOf('boss', conversation, tenant), 'paused');
  for (const key of journalOf(log, agent)) await store.journal(tenant, key, 'answer', 1);
  await store.startEffect(tenant, `${turn}/1.0`, { argsHash: 'h', by: 'me', at: 1 });
  await store.putReceipt(tenant, { ...RECEIPT, conversation, agent: address.agent, turn, step: 12 }, 1);
  await store.putArtifact(log, `${turn}.1.0`, 'output', 1);
  await store.putDerived(log, 'index/1', 'words', 1);
}

function journalOf({ tenant, conversation }: ConversationKey, agent: string): string[] {
  const turn = turnId(addressOf(agent, conversation, tenant), 1);
  return [`${turn}/1`, `${turn}/1/relief.0`, `compaction/${conversation}/1`];
}

/** What is left of them, as text. */
async function left(store: Store, log: ConversationKey, agent = 'worker'): Promise<string[]> {
  const { tenant, conversation } = log;
  const address = addressOf(agent, conversation, tenant);
  const turn = turnId(address, 1);
  const start = { argsHash: 'h', by: 'other', at: 1 };
  const journal = await Promise.all(journalOf(log, agent).map((key) => store.readJournal(tenant, key)));
  const found = {
    head: (await store.head(log)) > 0,
    events: (await store.read(log, { after: 0 })).length === 3,
    'event by id': (await store.readById(log, draftOf('e2').id)) !== null,
    addressed: (await store.addressed(address, { after: 0, upTo: 9 })).length === 2,
    listed: (await store.conversations(tenant, 99)).some(({ id }) => id === conversation),
    actor: (await store.readActor(address)) !== null,
    actors: (await store.listActors(log)).length === 2,
    due: (await dueOf(store, log)).includes(agent),
    answer: journal[0] !== null,
    relief: journal[1] !== null,
    lock: journal[2] !== null,
    receipt: (await store.readReceipt(tenant, turn, 12)) !== null,
    artifact: (await store.readArtifact(log, `${turn}.1.0`)) !== null,
    derived: (await store.derivedKeys(log, '')).length > 0,
    // Last, because the check creates it.
    effect: !(await store.startEffect(tenant, `${turn}/1.0`, start)).mine,
  };
  return Object.entries(found).flatMap(([name, isThere]) => (isThere ? [name] : []));
}

async function dueOf(store: Store, log: ConversationKey): Promise<string[]> {
  const due = await store.due({ now: 9000, clock: 9000, since: 0, limit: 999 });
  return due.flatMap(({ tenant, conversation, agent }) =>
    tenant === log.tenant && conversation === log.conversation ? [agent] : [],
  );
}

const DELETE_CASES: readonly StoreCase[] = [
  on('delete', 'removes everything, counts it, and can be repeated', async ({ store }) => {
    await fill(store, LOG);
    assert.equal((await left(store, LOG)).length, 15);
    assert.deepEqual(await store.deleteConversation(LOG), { events: 3, actors: 2 });
    assert.deepEqual(await left(store, LOG), []);
    assert.deepEqual(await dueOf(store, LOG), []);
    assert.deepEqual(await store.deleteConversation(LOG), { events: 0, actors: 0 });
    assert.deepEqual(await store.deleteConversation(logOf('nowhere')), { events: 0, actors: 0 });
  }),
  on('delete', 'keeps conversations with similar names and other tenants', async ({ store }) => {
    const others: [conversation: string, tenant: string, agent: string][] = [
      ['a:b', 'acme', 'worker'],
      ['a:worker', 'acme', '1'],
      ['a:worker:1', 'acme', '12'],
      ['ab', 'acme', 'worker'],
      ['a.b', 'acme', 'worker'],
      ['a-', 'acme', 'worker'],
      ['A', 'acme', 'worker'],
      ['b', 'acme', 'a'],
      ['compaction', 'acme', 'a'],
      ['a', 'acme2', 'worker'],
      ['a', 'globex', 'worker'],
    ];
    const gone = logOf('a');
    await fill(store, gone);
    for (const [conversation, tenant, agent] of others) await fill(store, logOf(conversation, tenant), agent);
    await store.deleteConversation(gone);
    for (const [conversation, tenant, agent] of others) {
      const found = await left(store, logOf(conversation, tenant), agent);
      assert.equal(found.length, 15, `${tenant}/${conversation} has only ${found.join(', ')}`);
    }
    assert.deepEqual(await left(store, gone), []);
  }),
  on('delete', 'finds its entries among many with a similar prefix', async ({ driver, store }) => {
    const many = Array.from({ length: 1200 }, (_, index) => `talk:a:worker:${index + 1}/1`);
    const own = Array.from({ length: 600 }, (_, index) => `talk:worker:${index + 1}/1`);
    await inLots([...many, ...own], (key) =>
      driver.putOnce({ tenant: 'acme', namespace: 'journal', key }, 'x', 1),
    );
    await store.deleteConversation(LOG);
    assert.equal(await driver.expire('journal', 2), many.length);
  }),
  on('delete', 'keeps bodies and key-values', async ({ store }) => {
    await store.putBody(LOG.tenant, 'talk:worker:1/1', 'text', 1);
    await store.compareAndSet(LOG.tenant, 'talk:worker:1/1', null, 'fact');
    await store.deleteConversation(LOG);
    assert.equal(await store.readBody(LOG.tenant, 'talk:worker:1/1'), 'text');
    assert.equal(await store.get(LOG.tenant, 'talk:worker:1/1'), 'fact');
  }),
  on('delete', 'begins again at seq 1, with free ids and new records', async ({ store }) => {
    await fill(store, LOG);
    await store.deleteConversation(LOG);
    const again = [entryOf('e3', { content: 'other', to: ['worker'] }), entryOf('e4')];
    const appended = await store.append(LOG, again);
    assert.deepEqual(
      appended.map(({ kind, event }) => [kind, event.seq]),
      [
        ['appended', 1],
        ['appended', 2],
      ],
    );
    assert.equal(await store.head(LOG), 2);
    assert.deepEqual(await contents(store, LOG), ['other', 'e4']);
    assert.deepEqual(await store.addressed(WORKER, { after: 0, upTo: 9 }), [1]);
    assert.deepEqual(await dueOf(store, LOG), ['worker']);
    assert.deepEqual(
      (await store.conversations(LOG.tenant, 9)).map(({ id, head }) => [id, head]),
      [[LOG.conversation, 2]],
    );
    const record = await acquired(store, WORKER);
    assert.deepEqual([record.fence, record.processed, record.parked], [1, 0, null]);
    assert.equal((await store.deleteConversation(LOG)).events, 2);
    assert.equal((await store.append(LOG, [entryOf('e1')]))[0]?.event.seq, 1);
  }),
  on('delete', 'refuses writes of a former lease holder', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.deleteConversation(LOG);
    assert.equal(await store.update(record, { processed: 1 }), null);
    assert.equal(await store.requestAbort(WORKER, turnId(WORKER, 1)), false);
    assert.equal(await store.readActor(WORKER), null);
  }),
  on('delete', 'removes more events than fit in one step', async ({ store }) => {
    const entries = Array.from({ length: 1100 }, (_, index) => entryOf(`e${index}`, { to: ['worker'] }));
    await store.append(LOG, entries);
    assert.deepEqual(await store.deleteConversation(LOG), { events: 1100, actors: 0 });
    assert.deepEqual(await store.read(LOG, { after: 0 }), []);
  }),
  on('delete', 'by several at once, with appends, keeps the log dense', async ({ store }) => {
    for (let round = 0; round < 2; round += 1) {
      const append = (index: number) => store.append(LOG, [entryOf(`r${round}-${index}`)]);
      await Promise.all(Array.from({ length: 10 }, (_, index) => append(index)));
      const late = Promise.all(Array.from({ length: 5 }, (_, index) => append(10 + index)));
      await Promise.all([store.deleteConversation(LOG), store.deleteConversation(LOG), late]);
      const events = await store.read(LOG, { after: 0 });
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1),
      );
    }
  }),
];

async function dueAgents(
  store: Store,
  query: { now?: number; clock?: number; since?: number; limit?: number } = {},
) {
  const found = await store.due({ now: 5000, clock: 0, since: 0, limit: 100, ...query });
  return found.map(({ tenant, conversation, agent }) => `${tenant}/${conversation}/${agent}`).toSorted();
}

const DUE_CASES: readonly StoreCase[] = [
  on('due', 'an addressed agent, with or without a record', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['worker', 'boss'] }), entryOf('e2')]);
    await store.append(logOf('talk', 'globex'), [entryOf('e1', { to: ['worker'] })]);
    await store.update(await acquired(store, WORKER), { until: 0 });
    assert.deepEqual(await dueAgents(store), ['acme/talk/boss', 'acme/talk/worker', 'globex/talk/worker']);
  }),
  on('due', 'not after processing, until addressed again', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['worker'] }), entryOf('e2', { to: ['worker'] })]);
    let record = await acquired(store, WORKER);
    record = (await store.update(record, { processed: 1 }))!;
    assert.deepEqual(await dueAgents(store), ['acme/talk/worker']);
    await store.update(record, { processed: 2 });
    assert.deepEqual(await dueAgents(store), []);
    await store.append(LOG, [entryOf('e3', { to: ['worker'] })]);
    assert.deepEqual(await dueAgents(store), ['acme/talk/worker']);
  }),
  on('due', 'not after a repeated append', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
    await store.update(await acquired(store, WORKER), { processed: 1 });
    await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
    assert.deepEqual(await dueAgents(store), []);
  }),
  on('due', 'not if addressed before `since`', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['worker'], at: 1000 })]);
    assert.deepEqual(await dueAgents(store, { since: 1001 }), []);
    assert.deepEqual(await dueAgents(store, { since: 1000 }), ['acme/talk/worker']);
  }),
  on('due', 'behind thousands of events that are processed, the oldest first', async ({ driver, store }) => {
    const handled = Array.from({ length: 5_200 }, (_, i) => entryOf(`e${i}`, { to: ['worker'], at: 1000 }));
    for (let from = 0; from < handled.length; from += 400)
      await store.append(LOG, handled.slice(from, from + 400));
    await store.update(await acquired(store, WORKER), { until: 0, processed: handled.length });
    for (const [name, at] of [['new', 3000] as const, ['old', 2000] as const])
      await store.append(logOf(name), [entryOf('e1', { to: ['worker'], at })]);
    const found = async (limit: number) =>
      (await driver.due({ now: 9000, clock: 9000, since: 0, limit })).map(({ conversation }) => conversation);
    assert.deepEqual(await found(9), ['old', 'new']);
    assert.deepEqual(await found(1), ['old']);
    await store.append(LOG, [entryOf('late', { to: ['worker'], at: 4000 })]);
    assert.deepEqual((await found(9)).toSorted(), ['new', 'old', 'talk']);
  }),
  on('due', 'a pinned turn of any age, after its lease', async ({ store }) => {
    await pinned(store, WORKER);
    assert.deepEqual(await dueAgents(store, { now: 1100, since: 4000 }), []);
    assert.deepEqual(await dueAgents(store, { now: 1101, since: 4000 }), ['acme/talk/worker']);
  }),
  on('due', 'a timer by `clock`, not by `now`', async ({ store }) => {
    const record = await acquired(store, WORKER);
    await store.update(record, { until: 0, state: { timers: [timerOf(9000), timerOf(8000)] } });
    const later = await acquired(store, addressOf('boss'));
    await store.update(later, { until: 0, state: { timers: [timerOf(8001)] } });
    const now = Number.MAX_SAFE_INTEGER;
    assert.deepEqual(await dueAgents(store, { now, clock: 7999 }), []);
    assert.deepEqual(await dueAgents(store, { now, clock: 8000 }), ['acme/talk/worker']);
    assert.deepEqual(await dueAgents(store, { clock: 8001, since: 4000 }), [
      'acme/talk/boss',
      'acme/talk/worker',
    ]);
  }),
  on('due', 'a timer until a write of the state removes it', async ({ store }) => {
    const record = await acquired(store, WORKER);
    const timed = await store.update(record, { state: { timers: [timerOf(8000)] } });
    const freed = await store.update(timed!, { until: 0, processed: 1 });
    assert.deepEqual(await dueAgents(store, { clock: 8000 }), ['acme/talk/worker']);
    const moved = await store.update(freed!, { state: { timers: [timerOf(8500)] } });
    assert.deepEqual(await dueAgents(store, { clock: 8499 }), []);
    assert.deepEqual(await dueAgents(store, { clock: 8500 }), ['acme/talk/worker']);
    await store.update(moved!, { state: { timers: [] } });
    assert.deepEqual(await dueAgents(store, { clock: 9000 }), []);
  }),
  on('due', 'no timer of a parked or leased actor', async ({ store }) => {
    const record = await acquired(store, WORKER);
    await store.update(record, { state: { timers: [timerOf(8000)] } });
    assert.deepEqual(await dueAgents(store, { now: 1100, clock: 9000 }), []);
    assert.deepEqual(await dueAgents(store, { now: 1101, clock: 9000 }), ['acme/talk/worker']);
    await store.park(WORKER, 'paused');
    assert.deepEqual(await dueAgents(store, { now: 1101, clock: 9000 }), []);
    await store.park(WORKER, null);
    assert.deepEqual(await dueAgents(store, { now: 1101, clock: 9000 }), ['acme/talk/worker']);
  }),
  on('due', 'an ended timer before an address, once', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['boss', 'worker'] })]);
    const record = await acquired(store, WORKER);
    await store.update(record, { until: 0, state: { timers: [timerOf(8000)] } });
    const query = { now: 5000, clock: 8000, since: 0 };
    const agents = async (limit: number) =>
      (await store.due({ ...query, limit })).map(({ agent }) => String(agent));
    assert.deepEqual(await agents(1), ['worker']);
    assert.deepEqual(await agents(9), ['worker', 'boss']);
    assert.deepEqual((await store.due({ ...query, clock: 0, limit: 9 })).length, 2);
  }),
  on('due', 'an actor with a live lease is left out, whatever it has to do', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
    await pinned(store, WORKER);
    assert.deepEqual(await dueAgents(store, { now: 1050 }), []);
    assert.deepEqual(await dueAgents(store, { now: 1101 }), ['acme/talk/worker']);
  }),
  on('due', 'a parked actor is left out until it is woken, whatever it has to do', async ({ store }) => {
    await store.append(LOG, [entryOf('e1', { to: ['worker', 'boss'] })]);
    await pinned(store, WORKER);
    await store.park(WORKER, 'failed');
    await store.park(addressOf('boss'), 'paused');
    assert.deepEqual(await dueAgents(store), []);
    await store.park(WORKER, null);
    await store.park(addressOf('boss'), null);
    assert.deepEqual(await dueAgents(store), ['acme/talk/boss', 'acme/talk/worker']);
  }),
  on('due', 'an actor is named once, and no more are named than asked for', async ({ store }) => {
    for (let index = 0; index < 5; index += 1) {
      await store.append(logOf(`c${index}`), [entryOf('e1', { to: ['worker'] })]);
      await pinned(store, addressOf('worker', `c${index}`));
    }
    assert.equal((await dueAgents(store)).length, 5);
    assert.equal((await dueAgents(store, { limit: 3 })).length, 3);
  }),
];

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

const LOG_CASES: readonly StoreCase[] = [
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
    const whole = { erased: 0, unchained: 0, begins: [1], problems: [], problemCount: 0, next: null };
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
  on('erasure', 'replaces the data of events and nothing else of them', async ({ driver, store }) => {
    await store.append(LOG, [entryOf('e1'), entryOf('e2', { to: ['worker'] }), entryOf('e3')]);
    const before = await driver.readEvents({ ...LOG, after: 0, limit: 10 });
    const large = JSON.stringify({ author: null, text: 'x'.repeat(300_000) });
    for (const data of ['{"left":1}', large, '{"left":"\\ud800 \\u0000"}']) {
      await driver.replaceData(LOG, [
        { id: 'e2', data },
        { id: 'nowhere', data },
      ]);
      const after = await driver.readEvents({ ...LOG, after: 0, limit: 10 });
      assert.deepEqual(after, [before[0], { ...before[1]!, data }, before[2]]);
    }
    assert.deepEqual(await store.addressed(addressOf(), { after: 0, upTo: 10 }), [2]);
    for (const each of await driver.scrub()) assert.equal(typeof each, 'string');
    const { problems } = await store.verify(LOG);
    assert.deepEqual(
      problems.map(({ kind, seq }) => [kind, seq]),
      [['unreadable', 2]],
    );
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
    // Pairs of conversations have the same time.
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
    // A conversation that begins again takes its place by the new event.
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

const ACTOR_CASES: readonly StoreCase[] = [
  on('acquire', 'creates a record with fence 1', async ({ store }) => {
    assert.equal(await store.readActor(WORKER), null);
    const record = await acquired(store, WORKER, 1000);
    assert.deepEqual(record, { ...newActorRecord(WORKER), fence: 1, owner: 'me', until: 1100 });
    assert.deepEqual(await store.readActor(WORKER), record);
  }),
  on('acquire', 'is refused until the last millisecond of the lease', async ({ store }) => {
    await acquired(store, WORKER, 1000);
    for (const now of [1000, 1100]) {
      const outcome = await store.acquire(WORKER, { owner: 'other', now, until: now + 100 });
      assert.deepEqual(outcome, { kind: 'busy', until: 1100 });
    }
    assert.equal((await store.readActor(WORKER))?.owner, 'me');
  }),
  on('acquire', 'raises the fence of an ended lease, nothing else', async ({ store }) => {
    const before = await pinned(store, WORKER);
    const outcome = await store.acquire(WORKER, { owner: 'other', now: 1101, until: 1200 });
    assert.deepEqual(outcome, {
      kind: 'acquired',
      record: { ...before, fence: 2, owner: 'other', until: 1200 },
    });
  }),
  on('acquire', 'by fifty at once creates one record', async ({ driver }) => {
    const attempts = Array.from({ length: 50 }, (_, index) =>
      driver.acquire(WORKER, { owner: `o${index}`, now: 1000, until: 1100 }),
    );
    const won = (await Promise.all(attempts)).flatMap((each) => (each.kind === 'acquired' ? [each.row] : []));
    assert.equal(won.length, 1);
    assert.equal(won[0]?.fence, 1);
    assert.equal((await driver.readActor(WORKER))?.owner, won[0]?.owner);
  }),
  on('acquire', 'by fifty at once after a lease succeeds once', async ({ driver }) => {
    await driver.acquire(WORKER, { owner: 'gone', now: 1000, until: 1100 });
    const attempts = Array.from({ length: 50 }, (_, index) =>
      driver.acquire(WORKER, { owner: `o${index}`, now: 2000, until: 2100 }),
    );
    const outcomes = await Promise.all(attempts);
    assert.equal(outcomes.filter(({ kind }) => kind === 'acquired').length, 1);
    assert.equal((await driver.readActor(WORKER))?.fence, 2);
  }),
  on('update', 'writes every field, and the next one builds on it', async ({ store }) => {
    const record = await acquired(store, WORKER);
    const session = {
      provider: 'claude-code',
      id: 's-1',
      checkpoint: 'm-9',
      home: 'machine:/sessions',
      model: 'm',
      baseline: 'baseline:a:1',
      sent: 12,
      sentHash: 'h',
      turn: turnId(WORKER, 3),
      compacted: false,
      state: 'ok' as const,
    };
    const full = await store.update(record, {
      until: 1500,
      owner: 'me2',
      processed: 7,
      parked: 'paused',
      state: {
        turnNo: 3,
        lastTurn: turnId(WORKER, 3),
        snapshot: '{"$a.b":"\\u0000"}',
        machineVersion: ACTOR_VERSION,
        session,
        cursor: 5,
        turn: { ...pinOf(WORKER, 4), live: { 'cwd.$x': 'y' } },
        timers: [timerOf(9000), timerOf(8000)],
      },
    });
    assert.ok(full);
    assert.equal(full.cursor, 5);
    assert.deepEqual(await store.readActor(WORKER), full);
    const next = await store.update(full, { processed: 8 });
    assert.deepEqual(next, { ...full, processed: 8 });
    assert.deepEqual(await store.readActor(WORKER), next);
  }),
  on('update', 'keeps `wakeAt` at the first timer', async ({ store, driver }) => {
    const record = await acquired(store, WORKER);
    assert.equal((await driver.readActor(WORKER))?.wakeAt, null);
    const timed = await store.update(record, { state: { timers: [timerOf(9000), timerOf(8000)] } });
    assert.equal((await driver.readActor(WORKER))?.wakeAt, 8000);
    const held = await store.update(timed!, { until: 1200 });
    assert.deepEqual(held?.timers, timed?.timers);
    assert.equal((await driver.readActor(WORKER))?.wakeAt, 8000);
    await store.update(held!, { state: { timers: [] } });
    assert.equal((await driver.readActor(WORKER))?.wakeAt, null);
  }),
  on('update', 'makes a record corrupt whose columns differ from its data', async ({ store, driver }) => {
    const record = await acquired(store, WORKER);
    await store.update(record, { state: { timers: [timerOf(9000)] } });
    for (const change of [{ wakeAt: 8999 }, { wakeAt: null }]) {
      await driver.compareAndSet(WORKER, { fence: 1 }, change);
      await rejectsWith('actor_corrupt', store.readActor(WORKER));
    }
    await driver.compareAndSet(WORKER, { fence: 1 }, { wakeAt: 9000 });
    assert.equal((await store.readActor(WORKER))?.timers.length, 1);
  }),
  on('update', 'with an older fence changes nothing', async ({ store }) => {
    const stale = await acquired(store, WORKER, 1000);
    const fresh = await acquired(store, WORKER, 2000);
    assert.equal(await store.update(stale, { processed: 9, until: 0 }), null);
    assert.deepEqual(await store.readActor(WORKER), fresh);
  }),
  on('update', 'of a missing record changes nothing', async ({ store }) => {
    assert.equal(await store.update(newActorRecord(WORKER), { processed: 9 }), null);
    assert.equal(await store.readActor(WORKER), null);
  }),
  on('update', 'for another turn changes nothing', async ({ store, driver }) => {
    const record = await pinned(store, WORKER);
    const wrong = { ...record, turn: pinOf(WORKER, 2) };
    assert.equal(await store.update(wrong, { state: { turn: null } }), null);
    assert.equal(await store.update({ ...record, turn: null }, { processed: 1 }), null);
    assert.deepEqual(await store.readActor(WORKER), record);
    const row = await driver.compareAndSet(WORKER, { fence: 1 }, { processed: 2 });
    assert.equal(row?.turn, record.turn?.id, 'without an expected turn, any turn is accepted');
  }),
  on('update', 'by twenty at once pins one turn', async ({ driver }) => {
    await driver.acquire(WORKER, { owner: 'me', now: 1000, until: 1100 });
    const pin = (index: number) =>
      driver.compareAndSet(WORKER, { fence: 1, turn: null }, { turn: `t${index}` });
    const rows = await Promise.all(Array.from({ length: 20 }, (_, index) => pin(index)));
    assert.equal(rows.filter((row) => row !== null).length, 1, 'more than one turn was pinned');
  }),
  on('abort', 'is accepted for the pinned turn only', async ({ store }) => {
    assert.equal(await store.requestAbort(WORKER, turnId(WORKER, 1)), false);
    const record = await pinned(store, WORKER);
    assert.equal(await store.requestAbort(WORKER, turnId(WORKER, 2)), false);
    assert.deepEqual(await store.readActor(WORKER), record);
    assert.equal(await store.requestAbort(WORKER, turnId(WORKER, 1)), true);
    assert.deepEqual(await store.readActor(WORKER), { ...record, abort: turnId(WORKER, 1) });
  }),
  on('abort', 'refuses the commit of its turn only', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.requestAbort(WORKER, turnId(WORKER, 1));
    assert.equal(await store.update(record, { state: { turn: null } }, { notAborted: true }), null);
    const ended = await store.update(record, { abort: null, state: { turn: null } });
    assert.equal(ended?.abort, null);
    const next = await store.update(ended!, { state: { turn: pinOf(WORKER, 2) } }, { notAborted: true });
    assert.ok(next);
  }),
  on('abort', 'of an ended turn does not stop the next', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.requestAbort(WORKER, turnId(WORKER, 1));
    const next = await store.update(record, { state: { turn: pinOf(WORKER, 2) } });
    assert.equal(next?.abort, turnId(WORKER, 1));
    assert.ok(await store.update(next!, { state: { turn: null } }, { notAborted: true }));
  }),
  on('abort', 'survives an update by a holder that has not seen it', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.requestAbort(WORKER, turnId(WORKER, 1));
    const renewed = await store.update(record, { until: 1200, state: { snapshot: 's' } });
    assert.equal(renewed?.abort, turnId(WORKER, 1));
    assert.equal((await store.readActor(WORKER))?.abort, turnId(WORKER, 1));
  }),
  on('abort', 'that races with a commit: exactly one succeeds', async ({ store }) => {
    for (let round = 0; round < 20; round += 1) {
      const worker = addressOf('worker', `race-${round}`);
      const record = await pinned(store, worker);
      const commit = () => store.update(record, { state: { turn: null } }, { notAborted: true });
      const abort = () => store.requestAbort(worker, turnId(worker, 1));
      const both = round % 2 === 0 ? [commit(), abort()] : [abort(), commit()].toReversed();
      const [committed, cancelled] = await Promise.all(both);
      assert.notEqual(committed !== null, cancelled);
    }
  }),
  on('park', 'creates a record that can be acquired; null ends it', async ({ store }) => {
    await store.park(WORKER, 'paused');
    assert.deepEqual(await store.readActor(WORKER), { ...newActorRecord(WORKER), parked: 'paused' });
    assert.equal((await acquired(store, WORKER)).parked, 'paused');
    await store.park(WORKER, null);
    assert.equal((await store.readActor(WORKER))?.parked, null);
  }),
  on('park', 'changes nothing if the stored value differs', async ({ store }) => {
    assert.equal(await store.park(WORKER, 'retired', 'paused'), false);
    assert.equal(await store.readActor(WORKER), null);
    assert.equal(await store.park(WORKER, 'paused', null), true);
    assert.equal(await store.park(WORKER, 'failed', null), false);
    assert.equal((await store.readActor(WORKER))?.parked, 'paused');
    assert.equal(await store.park(WORKER, 'retired', 'paused'), true);
    assert.equal(await store.park(WORKER, null, 'retired'), true);
    assert.equal((await store.readActor(WORKER))?.parked, null);
  }),
  on('park', 'survives such an update and changes nothing else', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.park(WORKER, 'paused');
    const updated = await store.update(record, { processed: 3, state: { turn: null } });
    assert.equal(updated?.parked, 'paused');
    assert.equal(updated?.processed, 3);
    assert.deepEqual(await store.readActor(WORKER), updated);
  }),
  on('list', 'has the actors of one conversation', async ({ store }) => {
    const boss = await acquired(store, addressOf('boss'));
    const worker = await pinned(store, WORKER);
    await acquired(store, addressOf('worker', 'elsewhere'));
    const listed = await store.listActors(logOf());
    const byAgent = listed.map((each) => ('address' in each ? each.address : each));
    assert.deepEqual(
      byAgent.toSorted((a, b) => (a.agent < b.agent ? -1 : 1)),
      [boss, worker],
    );
    assert.deepEqual(await store.listActors(logOf('nowhere')), []);
  }),
];

const ELSEWHERE = logOf('elsewhere');

function eventOf(
  id: string,
  {
    to = [],
    conversation = LOG.conversation,
    ifTaken = 'spare',
  }: Partial<Pick<RecordEvent, 'conversation' | 'ifTaken'>> & { to?: string[] } = {},
): RecordEvent {
  return { ...entryOf(id, { to }), conversation, ifTaken };
}

/** The end of turn 1, with these events. */
function endOf(events: readonly RecordEvent[], more: Partial<RecordStep> = {}): RecordStep {
  const state = { turnNo: 1, lastTurn: turnId(WORKER, 1), turn: null };
  return { patch: { processed: 1, state }, events, ...more };
}

/** The step and the events of its turn. */
async function told(store: Store, record: ActorRecord, step: RecordStep): Promise<Stepped & StepEvents> {
  const heard: StepEvents[] = [];
  const stepped = await store.step(record, { ...step, told: async (events) => void heard.push(events) });
  assert.ok(stepped);
  assert.equal(heard.length, 1);
  return { ...stepped, ...heard[0]! };
}

async function pinnedAfterOne(store: Store) {
  await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
  return pinned(store, WORKER);
}

const STEP_CASES: readonly StoreCase[] = [
  on('step', 'changes the record and appends its events, in order per log', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    const { conversation } = ELSEWHERE;
    const events = [
      eventOf('s1'),
      eventOf('p1', { conversation }),
      eventOf('s2'),
      eventOf('p2', { conversation }),
    ];
    const stepped = await told(store, record, endOf(events));
    assert.deepEqual(stepped.record, {
      ...record,
      processed: 1,
      turnNo: 1,
      lastTurn: turnId(WORKER, 1),
      turn: null,
    });
    const placed = stepped.appended.map(({ id, seq }) => [id, seq]);
    assert.deepEqual(placed, [
      ['s1', 2],
      ['p1', 1],
      ['s2', 3],
      ['p2', 2],
    ]);
    assert.deepEqual(await contents(store, LOG), ['e1', 's1', 's2']);
    assert.deepEqual(await contents(store, ELSEWHERE), ['p1', 'p2']);
    assert.deepEqual(await store.readActor(WORKER), stepped.record);
    assert.deepEqual(
      await store.read(LOG, { after: 1 }),
      stepped.appended.filter(({ id }) => id.startsWith('s')),
    );
  }),
  on('step', 'that is refused changes and appends nothing', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.requestAbort(WORKER, turnId(WORKER, 1));
    const expect = { notAborted: true } as const;
    const before = await store.readActor(WORKER);
    assert.equal(await store.step(record, endOf([eventOf('s1')], { expect })), null);
    assert.equal(await store.step({ ...record, fence: 9 }, endOf([eventOf('s1')])), null);
    assert.equal(await store.step({ ...record, turn: null }, endOf([eventOf('s1')])), null);
    assert.deepEqual(await contents(store, LOG), ['e1']);
    assert.deepEqual(await store.readActor(WORKER), before);
  }),
  on('step', 'gives an event a spare id or drops it, if another event has its id', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.append(LOG, [entryOf('s1', { content: 'other' }), entryOf('s2', { content: 'other' })]);
    const events = [eventOf('s1'), eventOf('s2', { ifTaken: 'drop' }), eventOf('s3')];
    const stepped = await told(store, record, endOf(events));
    assert.deepEqual(stepped.taken, ['message']);
    assert.deepEqual(stepped.appended.map(({ id }) => id).toSorted(), ['s1:@2', 's3']);
    assert.deepEqual((await contents(store, LOG)).toSorted(), ['e1', 'other', 'other', 's1', 's3']);
  }),
  on('step', 'leaves an event alone that was stored before', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.append(LOG, [entryOf('s1')]);
    const stepped = await told(store, record, endOf([eventOf('s1'), eventOf('s2')]));
    assert.deepEqual(
      stepped?.appended.map(({ id, seq }) => [id, seq]),
      [['s2', 3]],
    );
    assert.deepEqual(
      stepped.there.map(({ id, seq }) => [id, seq]),
      [['s1', 2]],
    );
    assert.deepEqual(stepped.taken, []);
  }),
  on('step', 'stores receipts with the change', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    const turn = turnId(WORKER, 1);
    const receipt = { ...RECEIPT, conversation: WORKER.conversation, agent: WORKER.agent, turn, step: 1 };
    await store.step(record, endOf([eventOf('s1')], { receipts: [{ receipt, at: 1000 }] }));
    assert.deepEqual(await store.readReceipt('acme' as never, turn, 1), receipt);
  }),
  on(
    'step',
    'gives the lease back once nothing is left, with all of the log processed',
    async ({ store }) => {
      const record = await pinnedAfterOne(store);
      const stepped = await store.step(record, endOf([eventOf('s1'), eventOf('s2')], { rests: true }));
      assert.equal(stepped?.isAddressed, false);
      const { owner, until, processed } = (await store.readActor(WORKER))!;
      assert.deepEqual({ owner, until, processed }, { owner: '', until: 0, processed: 3 });
      assert.deepEqual(stepped.record, await store.readActor(WORKER));
    },
  ),
  on('step', 'says so if the agent was addressed meanwhile, by others or by itself', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.append(LOG, [entryOf('e2', { to: ['worker'] })]);
    const stepped = await store.step(record, endOf([eventOf('s1')], { rests: true }));
    assert.equal(stepped?.isAddressed, true);
    assert.equal((await store.readActor(WORKER))?.processed, 1);
    const other = addressOf('boss');
    const held = await store.update(await acquired(store, other), { state: { turn: pinOf(other) } });
    const own = await store.step(held!, {
      patch: { processed: 3, state: { turn: null } },
      events: [eventOf('s2', { to: ['boss'] })],
      rests: true,
    });
    assert.equal(own?.isAddressed, true);
    assert.ok((await store.readActor(other))!.processed < 4);
  }),
  on('step', 'takes a lease that is free, and raises its fence', async ({ store }) => {
    const first = await acquired(store, WORKER);
    const free = await store.update(first, { owner: '', until: 0 });
    const begins: RecordStep = {
      patch: { owner: 'me', until: 2100, state: { turn: pinOf(WORKER) } },
      expect: { freeAt: 2000 },
      events: [eventOf('started')],
      isRepeated: true,
    };
    const stepped = await store.step(free!, begins);
    assert.ok(stepped);
    assert.equal(stepped.record.fence, first.fence + 1);
    assert.deepEqual(await store.readActor(WORKER), stepped.record);
    assert.deepEqual(await contents(store, LOG), ['started']);
    assert.equal(await store.step(free!, begins), null);
  }),
  on('step', 'takes no lease that is held, and none of a parked actor', async ({ store }) => {
    const first = await acquired(store, WORKER);
    const begins: RecordStep = { patch: { owner: 'you', until: 3100 }, expect: { freeAt: 1100 }, events: [] };
    assert.equal(await store.step(first, begins), null);
    await store.update(first, { owner: '', until: 0 });
    await store.park(WORKER, 'paused');
    assert.equal(await store.step(first, { ...begins, expect: { freeAt: 3000 } }), null);
    await store.park(WORKER, null);
    const further = { ...first, processed: first.processed + 1 };
    assert.equal(await store.step(further, { ...begins, expect: { freeAt: 3000 } }), null);
    assert.equal((await store.readActor(WORKER))?.fence, first.fence);
  }),
];

const KEY = { tenant: 'acme', namespace: 'journal', key: 'k' } as const;

const RECEIPT: Parameters<Store['putReceipt']>[1] = {
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

const ENTRY_CASES: readonly StoreCase[] = [
  on('entry', 'the first of fifty writers wins, all receive its data', async ({ driver }) => {
    const writes = Array.from({ length: 50 }, (_, index) => driver.putOnce(KEY, `d${index}`, 1));
    const outcomes = await Promise.all(writes);
    assert.equal(outcomes.filter(({ inserted }) => inserted).length, 1);
    const winner = outcomes.find(({ inserted }) => inserted)?.data;
    assert.ok(outcomes.every(({ data }) => data === winner));
    assert.equal(await driver.readEntry(KEY), winner);
  }),
  on('entry', 'LOG.tenant, namespace and key identify it', async ({ driver }) => {
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
    assert.equal(await store.readJournal(LOG.tenant, 't:1'), null);
    assert.equal(await store.journal(LOG.tenant, 't:1', 'first', 1), 'first');
    assert.equal(await store.journal(LOG.tenant, 't:1', 'second', 2), 'first');
    assert.equal(await store.readJournal(LOG.tenant, 't:1'), 'first');
  }),
  on('effect', 'belongs to the first that starts it', async ({ store }) => {
    const starts = Array.from({ length: 20 }, (_, index) =>
      store.startEffect(LOG.tenant, 'fx', { argsHash: 'h', by: `w${index}`, at: 1 }),
    );
    const outcomes = await Promise.all(starts);
    const mine = outcomes.filter((each) => each.mine);
    assert.equal(mine.length, 1);
    for (const { record } of outcomes) assert.deepEqual(record, mine[0]?.record);
  }),
  on('effect', 'is settled once; later callers receive the result', async ({ store }) => {
    const { stored } = await store.startEffect(LOG.tenant, 'fx', { argsHash: 'h', by: 'w', at: 1 });
    const done = { status: 'settled', argsHash: 'h', by: 'w', outcome: 'done', data: 'out' };
    assert.deepEqual(
      await store.settleEffect(LOG.tenant, 'fx', stored, { outcome: 'done', data: 'out' }),
      done,
    );
    assert.deepEqual(await store.settleEffect(LOG.tenant, 'fx', stored, { outcome: 'lost', data: '' }), done);
    const again = await store.startEffect(LOG.tenant, 'fx', { argsHash: 'h', by: 'x', at: 2 });
    assert.deepEqual([again.mine, again.record], [false, done]);
  }),
  on('effect', 'settled by twenty at once has one result', async ({ store }) => {
    const { stored } = await store.startEffect(LOG.tenant, 'fx', { argsHash: 'h', by: 'w', at: 1 });
    const ends = Array.from({ length: 20 }, (_, index) =>
      store.settleEffect(LOG.tenant, 'fx', stored, { outcome: 'done', data: `d${index}` }),
    );
    const records = await Promise.all(ends);
    for (const record of records) assert.deepEqual(record, records[0]);
  }),
  on('effect', 'cannot be settled before its start', async ({ store }) => {
    const { stored } = await store.startEffect(LOG.tenant, 'other', { argsHash: 'h', by: 'w', at: 1 });
    const early = store.settleEffect(LOG.tenant, 'fx', stored, { outcome: 'done', data: '' });
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
    await store.putReceipt(LOG.tenant, RECEIPT, 1);
    await store.putReceipt(LOG.tenant, { ...RECEIPT, step: 2, count: 9 }, 1);
    assert.deepEqual(await store.readReceipt(LOG.tenant, RECEIPT.turn!, 1), RECEIPT);
    assert.equal((await store.readReceipt(LOG.tenant, RECEIPT.turn!, 2))?.count, 9);
    assert.equal(await store.readReceipt(LOG.tenant, RECEIPT.turn!, 3), null);
  }),
  on('receipt', 'that is unreadable is an error, not missing', async ({ store, driver }) => {
    const key = { tenant: 'acme', namespace: 'prompt', key: `${RECEIPT.turn}:1` } as const;
    await driver.putOnce(key, '{"turn":1}', 1);
    await rejectsWith('store_corrupt', store.readReceipt(LOG.tenant, RECEIPT.turn!, 1));
  }),
  on('body', 'is stored once under its hash', async ({ store }) => {
    await store.putBody(LOG.tenant, 'h1', 'text', 1);
    await store.putBody(LOG.tenant, 'h1', 'text', 2);
    assert.equal(await store.readBody(LOG.tenant, 'h1'), 'text');
    assert.equal(await store.readBody(LOG.tenant, 'h2'), null);
  }),
  on('key-value', 'is written if absent or unchanged', async ({ store }) => {
    assert.equal(await store.get(LOG.tenant, 'n'), null);
    assert.equal(await store.compareAndSet(LOG.tenant, 'n', null, 'one'), 'one');
    assert.equal(await store.compareAndSet(LOG.tenant, 'n', null, 'two'), 'one');
    assert.equal(await store.compareAndSet(LOG.tenant, 'n', 'zero', 'two'), 'one');
    assert.equal(await store.compareAndSet(LOG.tenant, 'n', 'one', 'two'), 'two');
    assert.equal(await store.get(LOG.tenant, 'n'), 'two');
    assert.equal(await store.compareAndSet(LOG.tenant, 'gone', 'seen', 'new'), 'new');
    assert.equal(await store.get('globex' as typeof LOG.tenant, 'n'), null);
  }),
  on('key-value', 'of twenty concurrent writers: one wins, all receive its value', async ({ store }) => {
    await store.compareAndSet(LOG.tenant, 'n', null, 'start');
    const writes = Array.from({ length: 20 }, (_, index) =>
      store.compareAndSet(LOG.tenant, 'n', 'start', `from ${index}`),
    );
    const told = await Promise.all(writes);
    const stored = await store.get(LOG.tenant, 'n');
    assert.notEqual(stored, 'start');
    for (const each of told) assert.equal(each, stored);
  }),
  on('meta', 'is written once, for all tenants', async ({ store }) => {
    assert.equal(await store.meta('secret', 'one'), 'one');
    assert.equal(await store.meta('secret', 'two'), 'one');
  }),
  on('close', 'finishes earlier calls and refuses later ones', async ({ store }) => {
    const before = store.journal(LOG.tenant, 'k', 'd', 1);
    await store.close();
    assert.equal(await before, 'd');
    await rejectsWith('store_unavailable', store.journal(LOG.tenant, 'k2', 'd', 1));
    await rejectsWith('store_unavailable', store.readJournal(LOG.tenant, 'k'));
  }),
];
