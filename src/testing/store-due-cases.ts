import assert from 'node:assert/strict';
import type { Store } from '../store/store.ts';
import type { StoreCase } from './store-stage.ts';
import { acquired, addressOf, draftOf, entryOf, logOf, pinned } from './store-stage.ts';

const LOG = logOf();
const WORKER = addressOf();

async function dueAgents(store: Store, query: { now?: number; since?: number; limit?: number } = {}) {
  const found = await store.due({ now: 5000, since: 0, limit: 100, ...query });
  return found.map(({ tenant, conversation, agent }) => `${tenant}/${conversation}/${agent}`).toSorted();
}

export const DUE_CASES: readonly StoreCase[] = [
  [
    'due',
    'an agent that was addressed is due, with or without a record, in any tenant',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['worker', 'boss'] }), entryOf('e2')]);
      await store.append(logOf('talk', 'globex'), [entryOf('e1', { to: ['worker'] })]);
      await store.update(await acquired(store, WORKER), { until: 0 });
      assert.deepEqual(await dueAgents(store), ['acme/talk/boss', 'acme/talk/worker', 'globex/talk/worker']);
    },
  ],
  [
    'due',
    'an agent that has processed what it was sent is not due, until it is addressed again',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['worker'] }), entryOf('e2', { to: ['worker'] })]);
      let record = await acquired(store, WORKER);
      record = (await store.update(record, { processed: 1 }))!;
      assert.deepEqual(await dueAgents(store), ['acme/talk/worker']);
      await store.update(record, { processed: 2 });
      assert.deepEqual(await dueAgents(store), []);
      await store.append(LOG, [entryOf('e3', { to: ['worker'] })]);
      assert.deepEqual(await dueAgents(store), ['acme/talk/worker']);
    },
  ],
  [
    'due',
    'an append repeated after it was processed wakes nobody',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
      await store.update(await acquired(store, WORKER), { processed: 1 });
      await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
      assert.deepEqual(await dueAgents(store), []);
    },
  ],
  [
    'due',
    'what was addressed before the window is left out',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['worker'], at: 1000 })]);
      assert.deepEqual(await dueAgents(store, { since: 1001 }), []);
      assert.deepEqual(await dueAgents(store, { since: 1000 }), ['acme/talk/worker']);
    },
  ],
  [
    'due',
    'a pinned turn is due however old, once its lease is over',
    async ({ store }) => {
      await pinned(store, WORKER);
      assert.deepEqual(await dueAgents(store, { now: 1100, since: 4000 }), []);
      assert.deepEqual(await dueAgents(store, { now: 1101, since: 4000 }), ['acme/talk/worker']);
    },
  ],
  [
    'due',
    'an outbox is due however old, until it is empty',
    async ({ store }) => {
      const record = await acquired(store, WORKER);
      const full = await store.update(record, { until: 0, state: { outbox: [draftOf('o1')] } });
      assert.deepEqual(await dueAgents(store, { since: 4000 }), ['acme/talk/worker']);
      await store.update(full!, { state: { outbox: [] } });
      assert.deepEqual(await dueAgents(store, { since: 0 }), []);
    },
  ],
  [
    'due',
    'an actor with a live lease is left out, whatever it has to do',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['worker'] })]);
      const record = await pinned(store, WORKER);
      await store.update(record, { state: { outbox: [draftOf('o1')] } });
      assert.deepEqual(await dueAgents(store, { now: 1050 }), []);
      assert.deepEqual(await dueAgents(store, { now: 1101 }), ['acme/talk/worker']);
    },
  ],
  [
    'due',
    'a parked actor is left out until it is woken, whatever it has to do',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['worker', 'boss'] })]);
      await pinned(store, WORKER);
      await store.park(WORKER, 'failed');
      await store.park(addressOf('boss'), 'paused');
      assert.deepEqual(await dueAgents(store), []);
      await store.park(WORKER, null);
      await store.park(addressOf('boss'), null);
      assert.deepEqual(await dueAgents(store), ['acme/talk/boss', 'acme/talk/worker']);
    },
  ],
  [
    'due',
    'an actor is named once, and no more are named than asked for',
    async ({ store }) => {
      for (let index = 0; index < 5; index += 1) {
        await store.append(logOf(`c${index}`), [entryOf('e1', { to: ['worker'] })]);
        await pinned(store, addressOf('worker', `c${index}`));
      }
      assert.equal((await dueAgents(store)).length, 5);
      assert.equal((await dueAgents(store, { limit: 3 })).length, 3);
    },
  ],
];
