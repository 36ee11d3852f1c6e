import type { StoreDriver } from '../store/driver.ts';
import type { ConformanceCase } from './conformance.ts';
import { ACTOR_CASES } from './store-actor-cases.ts';
import { DUE_CASES } from './store-due-cases.ts';
import { LOG_CASES } from './store-log-cases.ts';
import { RECEIPT, REGISTER_CASES } from './store-entry-cases.ts';
import {
  acquired,
  addressOf,
  contents,
  draftOf,
  entryOf,
  inLots,
  logOf,
  pinned,
  storeCase,
  type StoreCase,
  timerOf,
} from './store-stage.ts';
import assert from 'node:assert/strict';
import { turnId } from '../events/index.ts';
import type { ConversationKey, Store } from '../store/store.ts';

/** Cases that every store must pass. `open` returns a driver of an empty store that no other case shares. */
export function storeConformance(open: () => Promise<StoreDriver>): ConformanceCase[] {
  const cases = [...LOG_CASES, ...ACTOR_CASES, ...DUE_CASES, ...REGISTER_CASES, ...DELETE_CASES];
  return cases.map((each) => storeCase(open, each));
}

const LOG = logOf();
const WORKER = addressOf();

/** Everything one agent can leave in a conversation. */
async function fill(store: Store, log: ConversationKey, agent = 'worker'): Promise<void> {
  const { tenant, conversation } = log;
  const address = addressOf(agent, conversation, tenant);
  const turn = turnId(address, 1);
  await store.append(log, [entryOf('e1', { to: [agent] }), entryOf('e2', { to: ['boss', agent] })]);
  await store.append(log, [entryOf('e3')]);
  const record = await pinned(store, address);
  await store.update(record, { state: { outbox: [draftOf('o1')], timers: [timerOf(5000)] } });
  await store.park(addressOf('boss', conversation, tenant), 'paused');
  for (const key of journalOf(log, agent)) await store.journal(tenant, key, 'answer', 1);
  await store.startEffect(tenant, `${turn}/1.0`, { argsHash: 'h', by: 'me', at: 1 });
  await store.putReceipt(tenant, { ...RECEIPT, conversation, agent: address.agent, turn, step: 12 }, 1);
  await store.putArtifact(log, `${turn}.1.0`, 'output', 1);
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
    // Last, because it creates one.
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
  [
    'delete',
    'leaves nothing of a conversation, says how much it was, and may be repeated',
    async ({ store }) => {
      await fill(store, LOG);
      assert.equal((await left(store, LOG)).length, 14);
      assert.deepEqual(await store.deleteConversation(LOG), { events: 3, actors: 2 });
      assert.deepEqual(await left(store, LOG), []);
      assert.deepEqual(await dueOf(store, LOG), []);
      assert.deepEqual(await store.deleteConversation(LOG), { events: 0, actors: 0 });
      assert.deepEqual(await store.deleteConversation(logOf('nowhere')), { events: 0, actors: 0 });
    },
  ],
  [
    'delete',
    'leaves other conversations alone, however alike their names, and other tenants',
    async ({ store }) => {
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
      for (const [conversation, tenant, agent] of others)
        await fill(store, logOf(conversation, tenant), agent);
      await store.deleteConversation(gone);
      for (const [conversation, tenant, agent] of others) {
        const found = await left(store, logOf(conversation, tenant), agent);
        assert.equal(found.length, 14, `of ${tenant}/${conversation} there is only ${found.join(', ')}`);
      }
      assert.deepEqual(await left(store, gone), []);
    },
  ],
  [
    'delete',
    'finds its few registers among the many of a conversation whose name begins alike',
    async ({ driver, store }) => {
      const many = Array.from({ length: 1200 }, (_, index) => `talk:a:worker:${index + 1}/1`);
      const own = Array.from({ length: 600 }, (_, index) => `talk:worker:${index + 1}/1`);
      await inLots([...many, ...own], (key) =>
        driver.putOnce({ tenant: 'acme', namespace: 'journal', key }, 'x', 1),
      );
      await store.deleteConversation(LOG);
      assert.equal(await driver.expire('journal', 2), many.length);
    },
  ],
  [
    'delete',
    'leaves bodies and notes, which others may share',
    async ({ store }) => {
      await store.putBody(LOG.tenant, 'talk:worker:1/1', 'text', 1);
      await store.compareAndSet(LOG.tenant, 'talk:worker:1/1', null, 'fact');
      await store.deleteConversation(LOG);
      assert.equal(await store.readBody(LOG.tenant, 'talk:worker:1/1'), 'text');
      assert.equal(await store.get(LOG.tenant, 'talk:worker:1/1'), 'fact');
    },
  ],
  [
    'delete',
    'makes it begin again: at seq 1, with ids that were taken before, and with records that are new',
    async ({ store }) => {
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
    },
  ],
  [
    'delete',
    'refuses the writes of who still holds an actor of it',
    async ({ store }) => {
      const record = await pinned(store, WORKER);
      await store.deleteConversation(LOG);
      assert.equal(await store.update(record, { processed: 1 }), null);
      assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 1)), false);
      assert.equal(await store.readActor(WORKER), null);
    },
  ],
  [
    'delete',
    'of more events than go at once removes them all',
    async ({ store }) => {
      const entries = Array.from({ length: 1100 }, (_, index) => entryOf(`e${index}`, { to: ['worker'] }));
      await store.append(LOG, entries);
      assert.deepEqual(await store.deleteConversation(LOG), { events: 1100, actors: 0 });
      assert.deepEqual(await store.read(LOG, { after: 0 }), []);
    },
  ],
  [
    'delete',
    'by several at once, among appends, leaves a dense log',
    async ({ store }) => {
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
    },
  ],
];
