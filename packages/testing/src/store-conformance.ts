import { type StoreDriver, turnId, type ConversationKey, type Store } from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';
import { ACTOR_CASES } from './store-actor-cases.ts';
import { LOG_CASES } from './store-log-cases.ts';
import { STEP_CASES } from './store-step-cases.ts';
import { RECEIPT, ENTRY_CASES } from './store-entry-cases.ts';
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
} from './store-stage.ts';
import assert from 'node:assert/strict';

/** The contract of a store but for its inbox, see `inbox-conformance.ts`. `open` returns the driver of a new, empty store. */
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

/** The remaining parts, as text. */
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
    assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 1)), false);
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
