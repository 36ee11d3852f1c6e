import assert from 'node:assert/strict';
import type { Store } from '../store/store.ts';
import type { StoreCase } from './store-stage.ts';
import {
  acquired,
  addressOf,
  draftOf,
  entryOf,
  logOf,
  pinned,
  outgoingEventOf,
  timerOf,
} from './store-stage.ts';

const LOG = logOf();
const WORKER = addressOf();

async function dueAgents(
  store: Store,
  query: { now?: number; clock?: number; since?: number; limit?: number } = {},
) {
  const found = await store.due({ now: 5000, clock: 0, since: 0, limit: 100, ...query });
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
    'posts alone are due as an outbox is',
    async ({ store }) => {
      const record = await acquired(store, WORKER);
      const full = await store.update(record, { until: 0, state: { posts: [outgoingEventOf('p1')] } });
      assert.deepEqual(await dueAgents(store, { since: 4000 }), ['acme/talk/worker']);
      await store.update(full!, { state: { posts: [] } });
      assert.deepEqual(await dueAgents(store), []);
    },
  ],
  [
    'due',
    'a timer is due from its time on, by the clock and not by the time for leases',
    async ({ store }) => {
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
    },
  ],
  [
    'due',
    'a timer is due no longer when a write leaves it out, and stays when a write leaves the state alone',
    async ({ store }) => {
      const record = await acquired(store, WORKER);
      const timed = await store.update(record, { state: { timers: [timerOf(8000)] } });
      const freed = await store.update(timed!, { until: 0, processed: 1 });
      assert.deepEqual(await dueAgents(store, { clock: 8000 }), ['acme/talk/worker']);
      const moved = await store.update(freed!, { state: { timers: [timerOf(8500)] } });
      assert.deepEqual(await dueAgents(store, { clock: 8499 }), []);
      assert.deepEqual(await dueAgents(store, { clock: 8500 }), ['acme/talk/worker']);
      await store.update(moved!, { state: { timers: [] } });
      assert.deepEqual(await dueAgents(store, { clock: 9000 }), []);
    },
  ],
  [
    'due',
    'a timer of a parked actor, or of one with a live lease, waits',
    async ({ store }) => {
      const record = await acquired(store, WORKER);
      await store.update(record, { state: { timers: [timerOf(8000)] } });
      assert.deepEqual(await dueAgents(store, { now: 1100, clock: 9000 }), []);
      assert.deepEqual(await dueAgents(store, { now: 1101, clock: 9000 }), ['acme/talk/worker']);
      await store.park(WORKER, 'paused');
      assert.deepEqual(await dueAgents(store, { now: 1101, clock: 9000 }), []);
      await store.park(WORKER, null);
      assert.deepEqual(await dueAgents(store, { now: 1101, clock: 9000 }), ['acme/talk/worker']);
    },
  ],
  [
    'due',
    'an actor whose time has come stands before one that is only addressed, and is named once',
    async ({ store }) => {
      await store.append(LOG, [entryOf('e1', { to: ['boss', 'worker'] })]);
      const record = await acquired(store, WORKER);
      await store.update(record, { until: 0, state: { timers: [timerOf(8000)] } });
      const query = { now: 5000, clock: 8000, since: 0 };
      const agents = async (limit: number) =>
        (await store.due({ ...query, limit })).map(({ agent }) => String(agent));
      assert.deepEqual(await agents(1), ['worker']);
      assert.deepEqual(await agents(9), ['worker', 'boss']);
      const full = (await store.readActor(WORKER))!;
      await store.update(full, { state: { outbox: [draftOf('o1')] } });
      assert.deepEqual(await agents(9), ['worker', 'boss']);
      assert.deepEqual((await store.due({ ...query, clock: 0, limit: 9 })).length, 2);
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
