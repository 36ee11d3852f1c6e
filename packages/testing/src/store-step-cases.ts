import assert from 'node:assert/strict';
import {
  type ActorRecord,
  turnId,
  type RecordEvent,
  type RecordStep,
  type StepEvents,
  type Stepped,
  type Store,
} from './troupe.ts';
import { RECEIPT } from './store-entry-cases.ts';
import {
  acquired,
  addressOf,
  contents,
  entryOf,
  logOf,
  on,
  pinned,
  pinOf,
  type StoreCase,
} from './store-stage.ts';

const WORKER = addressOf();
const TALK = logOf();
const ELSEWHERE = logOf('elsewhere');

function eventOf(
  id: string,
  {
    to = [],
    conversation = TALK.conversation,
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

/** The step, with what it told. */
async function told(store: Store, record: ActorRecord, step: RecordStep): Promise<Stepped & StepEvents> {
  const heard: StepEvents[] = [];
  const stepped = await store.step(record, { ...step, told: async (events) => void heard.push(events) });
  assert.ok(stepped);
  assert.equal(heard.length, 1);
  return { ...stepped, ...heard[0]! };
}

async function pinnedAfterOne(store: Store) {
  await store.append(TALK, [entryOf('e1', { to: ['worker'] })]);
  return pinned(store, WORKER);
}

export const STEP_CASES: readonly StoreCase[] = [
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
    assert.deepEqual(await contents(store, TALK), ['e1', 's1', 's2']);
    assert.deepEqual(await contents(store, ELSEWHERE), ['p1', 'p2']);
    assert.deepEqual(await store.readActor(WORKER), stepped.record);
    assert.deepEqual(
      await store.read(TALK, { after: 1 }),
      stepped.appended.filter(({ id }) => id.startsWith('s')),
    );
  }),
  on('step', 'that is refused changes and appends nothing', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.requestCancel(WORKER, turnId(WORKER, 1));
    const expect = { notCancelled: true } as const;
    const before = await store.readActor(WORKER);
    assert.equal(await store.step(record, endOf([eventOf('s1')], { expect })), null);
    assert.equal(await store.step({ ...record, fence: 9 }, endOf([eventOf('s1')])), null);
    assert.equal(await store.step({ ...record, turn: null }, endOf([eventOf('s1')])), null);
    assert.deepEqual(await contents(store, TALK), ['e1']);
    assert.deepEqual(await store.readActor(WORKER), before);
  }),
  on('step', 'gives an event a spare id or drops it, if another event has its id', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.append(TALK, [entryOf('s1', { content: 'other' }), entryOf('s2', { content: 'other' })]);
    const events = [eventOf('s1'), eventOf('s2', { ifTaken: 'drop' }), eventOf('s3')];
    const stepped = await told(store, record, endOf(events));
    assert.deepEqual(stepped.taken, ['message']);
    assert.deepEqual(stepped.appended.map(({ id }) => id).toSorted(), ['s1:@2', 's3']);
    assert.deepEqual((await contents(store, TALK)).toSorted(), ['e1', 'other', 'other', 's1', 's3']);
  }),
  on('step', 'leaves an event alone that was stored before', async ({ store }) => {
    const record = await pinnedAfterOne(store);
    await store.append(TALK, [entryOf('s1')]);
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
    await store.append(TALK, [entryOf('e2', { to: ['worker'] })]);
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
    assert.deepEqual(await contents(store, TALK), ['started']);
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
