import assert from 'node:assert/strict';
import { ACTOR_VERSION, newActorRecord, turnId } from '../events/index.ts';
import type { StoreCase } from './store-stage.ts';
import {
  acquired,
  addressOf,
  draftOf,
  logOf,
  pinned,
  pinOf,
  outgoingEventOf,
  rejectsWith,
  timerOf,
} from './store-stage.ts';

const WORKER = addressOf();
const KEY = { tenant: 'acme', conversation: 'talk', agent: 'worker' };

export const ACTOR_CASES: readonly StoreCase[] = [
  [
    'acquire',
    'makes a new record with fence 1',
    async ({ store }) => {
      assert.equal(await store.readActor(WORKER), null);
      const record = await acquired(store, WORKER, 1000);
      assert.deepEqual(record, { ...newActorRecord(WORKER), fence: 1, owner: 'me', until: 1100 });
      assert.deepEqual(await store.readActor(WORKER), record);
    },
  ],
  [
    'acquire',
    'is refused while the lease lives, up to and including its last millisecond',
    async ({ store }) => {
      await acquired(store, WORKER, 1000);
      for (const now of [1000, 1100]) {
        const outcome = await store.acquire(WORKER, { owner: 'other', now, until: now + 100 });
        assert.deepEqual(outcome, { kind: 'busy', until: 1100 });
      }
      assert.equal((await store.readActor(WORKER))?.owner, 'me');
    },
  ],
  [
    'acquire',
    'raises the fence of a lease that is over and keeps the rest of the record',
    async ({ store }) => {
      const before = await pinned(store, WORKER);
      const outcome = await store.acquire(WORKER, { owner: 'other', now: 1101, until: 1200 });
      assert.deepEqual(outcome, {
        kind: 'acquired',
        record: { ...before, fence: 2, owner: 'other', until: 1200 },
      });
    },
  ],
  [
    'acquire',
    'by fifty at once on a record that does not exist is won by one',
    async ({ driver }) => {
      const attempts = Array.from({ length: 50 }, (_, index) =>
        driver.acquire(KEY, { owner: `o${index}`, now: 1000, until: 1100 }),
      );
      const won = (await Promise.all(attempts)).flatMap((each) =>
        each.kind === 'acquired' ? [each.row] : [],
      );
      assert.equal(won.length, 1);
      assert.equal(won[0]?.fence, 1);
      assert.equal((await driver.readActor(KEY))?.owner, won[0]?.owner);
    },
  ],
  [
    'acquire',
    'by fifty at once on a lease that is over is won by one',
    async ({ driver }) => {
      await driver.acquire(KEY, { owner: 'gone', now: 1000, until: 1100 });
      const attempts = Array.from({ length: 50 }, (_, index) =>
        driver.acquire(KEY, { owner: `o${index}`, now: 2000, until: 2100 }),
      );
      const outcomes = await Promise.all(attempts);
      assert.equal(outcomes.filter(({ kind }) => kind === 'acquired').length, 1);
      assert.equal((await driver.readActor(KEY))?.fence, 2);
    },
  ],
  [
    'update',
    'writes every field, reads back as returned, and the next update builds on it',
    async ({ store }) => {
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
          outbox: [draftOf('o1', { to: ['boss'], content: 'lone \ud800' })],
          posts: [outgoingEventOf('p1'), outgoingEventOf('p2', 'talk')],
          timers: [timerOf(9000), timerOf(8000)],
        },
      });
      assert.ok(full);
      assert.equal(full.cursor, 5);
      assert.deepEqual(await store.readActor(WORKER), full);
      const next = await store.update(full, { processed: 8 });
      assert.deepEqual(next, { ...full, processed: 8 });
      assert.deepEqual(await store.readActor(WORKER), next);
    },
  ],
  [
    'update',
    'files a record under the first of its timers, and under none when they are gone',
    async ({ store, driver }) => {
      const record = await acquired(store, WORKER);
      assert.equal((await driver.readActor(KEY))?.wakeAt, null);
      const timed = await store.update(record, { state: { timers: [timerOf(9000), timerOf(8000)] } });
      assert.equal((await driver.readActor(KEY))?.wakeAt, 8000);
      const held = await store.update(timed!, { until: 1200 });
      assert.deepEqual(held?.timers, timed?.timers);
      assert.equal((await driver.readActor(KEY))?.wakeAt, 8000);
      await store.update(held!, { state: { timers: [] } });
      assert.equal((await driver.readActor(KEY))?.wakeAt, null);
    },
  ],
  [
    'update',
    'of a record that is filed under another time, or as one with nothing to send, is refused as corrupt',
    async ({ store, driver }) => {
      const record = await acquired(store, WORKER);
      await store.update(record, { state: { timers: [timerOf(9000)], posts: [outgoingEventOf('p1')] } });
      const { data, ...filed } = (await driver.readActor(KEY))!;
      assert.equal(filed.outbox, true);
      for (const change of [{ wakeAt: 8999 }, { wakeAt: null }, { wakeAt: 9000, outbox: false }]) {
        await driver.compareAndSet(KEY, { fence: 1 }, change);
        await rejectsWith('actor_corrupt', store.readActor(WORKER));
      }
      await driver.compareAndSet(KEY, { fence: 1 }, { wakeAt: 9000, outbox: true, data });
      assert.equal((await store.readActor(WORKER))?.timers.length, 1);
    },
  ],
  [
    'update',
    'reads a record from before there were posts and timers as one without',
    async ({ store, driver }) => {
      const record = await pinned(store, WORKER);
      const row = (await driver.readActor(KEY))!;
      const { posts: _, timers: __, ...older } = JSON.parse(row.data) as Record<string, unknown>;
      await driver.compareAndSet(KEY, { fence: 1 }, { data: JSON.stringify(older) });
      assert.deepEqual(await store.readActor(WORKER), record);
    },
  ],
  [
    'update',
    'under an older fence changes nothing',
    async ({ store }) => {
      const stale = await acquired(store, WORKER, 1000);
      const fresh = await acquired(store, WORKER, 2000);
      assert.equal(await store.update(stale, { processed: 9, until: 0 }), null);
      assert.deepEqual(await store.readActor(WORKER), fresh);
    },
  ],
  [
    'update',
    'of a record that does not exist changes nothing',
    async ({ store }) => {
      assert.equal(await store.update(newActorRecord(WORKER), { processed: 9 }), null);
      assert.equal(await store.readActor(WORKER), null);
    },
  ],
  [
    'update',
    'of another turn than the pinned one changes nothing',
    async ({ store, driver }) => {
      const record = await pinned(store, WORKER);
      const wrong = { ...record, turn: pinOf(WORKER, 2) };
      assert.equal(await store.update(wrong, { state: { turn: null } }), null);
      assert.equal(await store.update({ ...record, turn: null }, { processed: 1 }), null);
      assert.deepEqual(await store.readActor(WORKER), record);
      const row = await driver.compareAndSet(KEY, { fence: 1 }, { processed: 2 });
      assert.equal(row?.turn, record.turn?.id, 'without an expectation about the turn, any will do');
    },
  ],
  [
    'update',
    'with the same fence from twenty at once is applied by all, one after the other',
    async ({ driver }) => {
      await driver.acquire(KEY, { owner: 'me', now: 1000, until: 1100 });
      const pin = (index: number) =>
        driver.compareAndSet(KEY, { fence: 1, turn: null }, { turn: `t${index}` });
      const rows = await Promise.all(Array.from({ length: 20 }, (_, index) => pin(index)));
      assert.equal(rows.filter((row) => row !== null).length, 1, 'a pin expects that nothing is pinned');
    },
  ],
  [
    'cancel',
    'is taken for the pinned turn only',
    async ({ store }) => {
      assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 1)), false);
      const record = await pinned(store, WORKER);
      assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 2)), false);
      assert.deepEqual(await store.readActor(WORKER), record);
      assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 1)), true);
      assert.deepEqual(await store.readActor(WORKER), { ...record, cancel: turnId(WORKER, 1) });
    },
  ],
  [
    'cancel',
    'refuses the commit of its turn, and nothing else',
    async ({ store }) => {
      const record = await pinned(store, WORKER);
      await store.requestCancel(WORKER, turnId(WORKER, 1));
      assert.equal(await store.update(record, { state: { turn: null } }, { notCancelled: true }), null);
      const ended = await store.update(record, { cancel: null, state: { turn: null } });
      assert.equal(ended?.cancel, null);
      const next = await store.update(ended!, { state: { turn: pinOf(WORKER, 2) } }, { notCancelled: true });
      assert.ok(next);
    },
  ],
  [
    'cancel',
    'of a turn that is over does not stop the next',
    async ({ store }) => {
      const record = await pinned(store, WORKER);
      await store.requestCancel(WORKER, turnId(WORKER, 1));
      const next = await store.update(record, { state: { turn: pinOf(WORKER, 2) } });
      assert.equal(next?.cancel, turnId(WORKER, 1));
      assert.ok(await store.update(next!, { state: { turn: null } }, { notCancelled: true }));
    },
  ],
  [
    'cancel',
    'is not lost to an update by a holder who has not seen it',
    async ({ store }) => {
      const record = await pinned(store, WORKER);
      await store.requestCancel(WORKER, turnId(WORKER, 1));
      const renewed = await store.update(record, { until: 1200, state: { snapshot: 's' } });
      assert.equal(renewed?.cancel, turnId(WORKER, 1));
      assert.equal((await store.readActor(WORKER))?.cancel, turnId(WORKER, 1));
    },
  ],
  [
    'cancel',
    'racing with a commit: either the commit is refused, or the cancel was too late',
    async ({ store }) => {
      for (let round = 0; round < 20; round += 1) {
        const worker = addressOf('worker', `race-${round}`);
        const record = await pinned(store, worker);
        const commit = () => store.update(record, { state: { turn: null } }, { notCancelled: true });
        const cancel = () => store.requestCancel(worker, turnId(worker, 1));
        const both = round % 2 === 0 ? [commit(), cancel()] : [cancel(), commit()].toReversed();
        const [committed, cancelled] = await Promise.all(both);
        assert.notEqual(committed !== null, cancelled);
      }
    },
  ],
  [
    'park',
    'makes a record that can still be taken, and null wakes it again',
    async ({ store }) => {
      await store.park(WORKER, 'paused');
      assert.deepEqual(await store.readActor(WORKER), { ...newActorRecord(WORKER), parked: 'paused' });
      assert.equal((await acquired(store, WORKER)).parked, 'paused');
      await store.park(WORKER, null);
      assert.equal((await store.readActor(WORKER))?.parked, null);
    },
  ],
  [
    'park',
    'changes nothing where something else is there than was expected',
    async ({ store }) => {
      assert.equal(await store.park(WORKER, 'retired', 'paused'), false);
      assert.equal(await store.readActor(WORKER), null);
      assert.equal(await store.park(WORKER, 'paused', null), true);
      assert.equal(await store.park(WORKER, 'failed', null), false);
      assert.equal((await store.readActor(WORKER))?.parked, 'paused');
      assert.equal(await store.park(WORKER, 'retired', 'paused'), true);
      assert.equal(await store.park(WORKER, null, 'retired'), true);
      assert.equal((await store.readActor(WORKER))?.parked, null);
    },
  ],
  [
    'park',
    'is not lost to an update by a holder who has not seen it, and changes nothing else',
    async ({ store }) => {
      const record = await pinned(store, WORKER);
      await store.park(WORKER, 'paused');
      const updated = await store.update(record, { processed: 3, state: { turn: null } });
      assert.equal(updated?.parked, 'paused');
      assert.equal(updated?.processed, 3);
      assert.deepEqual(await store.readActor(WORKER), updated);
    },
  ],
  [
    'list',
    'shows the actors of one conversation',
    async ({ store }) => {
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
    },
  ],
];
