import assert from 'node:assert/strict';
import { ACTOR_VERSION, newActorRecord, turnId } from './troupe.ts';
import {
  acquired,
  addressOf,
  logOf,
  on,
  pinned,
  pinOf,
  rejectsWith,
  type StoreCase,
  timerOf,
} from './store-stage.ts';

const WORKER = addressOf();
const KEY = { tenant: 'acme', conversation: 'talk', agent: 'worker' };

export const ACTOR_CASES: readonly StoreCase[] = [
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
      driver.acquire(KEY, { owner: `o${index}`, now: 1000, until: 1100 }),
    );
    const won = (await Promise.all(attempts)).flatMap((each) => (each.kind === 'acquired' ? [each.row] : []));
    assert.equal(won.length, 1);
    assert.equal(won[0]?.fence, 1);
    assert.equal((await driver.readActor(KEY))?.owner, won[0]?.owner);
  }),
  on('acquire', 'by fifty at once after a lease succeeds once', async ({ driver }) => {
    await driver.acquire(KEY, { owner: 'gone', now: 1000, until: 1100 });
    const attempts = Array.from({ length: 50 }, (_, index) =>
      driver.acquire(KEY, { owner: `o${index}`, now: 2000, until: 2100 }),
    );
    const outcomes = await Promise.all(attempts);
    assert.equal(outcomes.filter(({ kind }) => kind === 'acquired').length, 1);
    assert.equal((await driver.readActor(KEY))?.fence, 2);
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
    assert.equal((await driver.readActor(KEY))?.wakeAt, null);
    const timed = await store.update(record, { state: { timers: [timerOf(9000), timerOf(8000)] } });
    assert.equal((await driver.readActor(KEY))?.wakeAt, 8000);
    const held = await store.update(timed!, { until: 1200 });
    assert.deepEqual(held?.timers, timed?.timers);
    assert.equal((await driver.readActor(KEY))?.wakeAt, 8000);
    await store.update(held!, { state: { timers: [] } });
    assert.equal((await driver.readActor(KEY))?.wakeAt, null);
  }),
  on('update', 'makes a record corrupt whose columns differ from its data', async ({ store, driver }) => {
    const record = await acquired(store, WORKER);
    await store.update(record, { state: { timers: [timerOf(9000)] } });
    for (const change of [{ wakeAt: 8999 }, { wakeAt: null }]) {
      await driver.compareAndSet(KEY, { fence: 1 }, change);
      await rejectsWith('actor_corrupt', store.readActor(WORKER));
    }
    await driver.compareAndSet(KEY, { fence: 1 }, { wakeAt: 9000 });
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
    const row = await driver.compareAndSet(KEY, { fence: 1 }, { processed: 2 });
    assert.equal(row?.turn, record.turn?.id, 'without an expected turn, any turn is accepted');
  }),
  on('update', 'by twenty at once pins one turn', async ({ driver }) => {
    await driver.acquire(KEY, { owner: 'me', now: 1000, until: 1100 });
    const pin = (index: number) => driver.compareAndSet(KEY, { fence: 1, turn: null }, { turn: `t${index}` });
    const rows = await Promise.all(Array.from({ length: 20 }, (_, index) => pin(index)));
    assert.equal(rows.filter((row) => row !== null).length, 1, 'more than one turn was pinned');
  }),
  on('cancel', 'is accepted for the pinned turn only', async ({ store }) => {
    assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 1)), false);
    const record = await pinned(store, WORKER);
    assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 2)), false);
    assert.deepEqual(await store.readActor(WORKER), record);
    assert.equal(await store.requestCancel(WORKER, turnId(WORKER, 1)), true);
    assert.deepEqual(await store.readActor(WORKER), { ...record, cancel: turnId(WORKER, 1) });
  }),
  on('cancel', 'refuses the commit of its turn only', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.requestCancel(WORKER, turnId(WORKER, 1));
    assert.equal(await store.update(record, { state: { turn: null } }, { notCancelled: true }), null);
    const ended = await store.update(record, { cancel: null, state: { turn: null } });
    assert.equal(ended?.cancel, null);
    const next = await store.update(ended!, { state: { turn: pinOf(WORKER, 2) } }, { notCancelled: true });
    assert.ok(next);
  }),
  on('cancel', 'of an ended turn does not stop the next', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.requestCancel(WORKER, turnId(WORKER, 1));
    const next = await store.update(record, { state: { turn: pinOf(WORKER, 2) } });
    assert.equal(next?.cancel, turnId(WORKER, 1));
    assert.ok(await store.update(next!, { state: { turn: null } }, { notCancelled: true }));
  }),
  on('cancel', 'survives an update by a holder that has not seen it', async ({ store }) => {
    const record = await pinned(store, WORKER);
    await store.requestCancel(WORKER, turnId(WORKER, 1));
    const renewed = await store.update(record, { until: 1200, state: { snapshot: 's' } });
    assert.equal(renewed?.cancel, turnId(WORKER, 1));
    assert.equal((await store.readActor(WORKER))?.cancel, turnId(WORKER, 1));
  }),
  on('cancel', 'that races with a commit: exactly one succeeds', async ({ store }) => {
    for (let round = 0; round < 20; round += 1) {
      const worker = addressOf('worker', `race-${round}`);
      const record = await pinned(store, worker);
      const commit = () => store.update(record, { state: { turn: null } }, { notCancelled: true });
      const cancel = () => store.requestCancel(worker, turnId(worker, 1));
      const both = round % 2 === 0 ? [commit(), cancel()] : [cancel(), commit()].toReversed();
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
