import { expect, test } from 'vitest';
import type { ActorAddress, AgentId, ConversationId, EventId, TenantId } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { withFormerIds } from '../../src/store/renamed-agents.ts';
import type { Store } from '../../src/store/store.ts';
import { openDriver } from '../support/mode.ts';

const former = new Map([['assessor' as AgentId, 'adjuster' as AgentId]]);
const log = { tenant: 'default' as TenantId, conversation: 'c' as ConversationId };
const old: ActorAddress = { ...log, agent: 'assessor' as AgentId };
const present: ActorAddress = { ...log, agent: 'adjuster' as AgentId };
const lease = (owner: string, now: number) => ({ owner, now, until: now + 100 });

/** A process that knows the agent by its former id alone, and one that knows both. */
async function openBoth(soleOwner = false): Promise<{ before: Store; after: Store }> {
  const before = createStore(await openDriver());
  return { before, after: withFormerIds(before, { former, soleOwner, countTokens: (text) => text.length }) };
}

async function say(store: Store, id: string, to: string): Promise<void> {
  const author = { kind: 'user' as const, id: 'ana', name: 'Ana' };
  const draft = {
    id: id as EventId,
    author,
    to: [to as AgentId],
    kind: 'message' as const,
    body: { content: id },
  };
  await store.append(log, [{ draft, at: 1, tokens: 1 }]);
}

async function take(store: Store, address: ActorAddress, owner: string, now: number) {
  const acquired = await store.acquire(address, lease(owner, now));
  if (acquired.kind === 'busy') throw new Error('busy');
  return acquired.record;
}

test('a process waits for the holder of the former id, and no holder of the former id comes after it', async () => {
  const { before, after } = await openBoth();
  await say(before, 'one', 'assessor');
  const working = await take(before, old, 'old worker', 10);
  expect(await after.acquire(present, lease('new worker', 20))).toMatchObject({ kind: 'busy', until: 110 });
  expect((await before.readActor(present))?.owner).toBe('');
  await before.update(working, { owner: '', until: 0, processed: 1, state: { turnNo: 1 } });
  const taken = await take(after, old, 'new worker', 30);
  expect(taken).toMatchObject({ agent: 'adjuster', processed: 1, turnNo: 1, took: ['assessor'] });
  expect(await before.acquire(old, lease('old worker', 1_000_000))).toMatchObject({ kind: 'busy' });
  expect(await before.update(working, { processed: 5 })).toBeNull();
});

test('a holder of the former id that slept through its lease changes nothing when it wakes', async () => {
  const { before, after } = await openBoth();
  const asleep = await take(before, old, 'old worker', 10);
  expect(await take(after, present, 'new worker', 200)).toMatchObject({ took: ['assessor'] });
  expect(await before.update(asleep, { processed: 1 })).toBeNull();
  expect(await before.step(asleep, { patch: {}, events: [] })).toBeNull();
});

test('a process that died while it took over is followed by one that ends it', async () => {
  const { before, after } = await openBoth();
  await say(before, 'one', 'assessor');
  const working = await take(before, old, 'old worker', 10);
  await before.update(working, { owner: '', until: 0, processed: 1, state: { turnNo: 4 } });
  let isDead = true;
  const dying = withFormerIds(
    {
      ...before,
      update: (...args) => (isDead ? Promise.reject(new Error('killed')) : before.update(...args)),
    },
    { former, soleOwner: false, countTokens: () => 1 },
  );
  await expect(dying.acquire(present, lease('dying', 20))).rejects.toThrow('killed');
  isDead = false;
  expect(await take(after, present, 'next', 500)).toMatchObject({
    processed: 1,
    turnNo: 4,
    took: ['assessor'],
  });
});

test('what another process addresses to the former id later is found, and only until it is done', async () => {
  const { before, after } = await openBoth();
  const record = await take(after, present, 'new worker', 10);
  await after.update(record, { owner: '', until: 0 });
  await say(before, 'late', 'assessor');
  const query = { now: 1_000, clock: 1_000, since: 0, limit: 10 };
  expect(await before.due(query)).toEqual([]);
  expect(await after.due(query)).toEqual([present]);
  expect(await after.addressed(present, { after: 0, upTo: 9 })).toEqual([1]);
  const again = await take(after, present, 'new worker', 2_000);
  await after.update(again, { owner: '', until: 0, processed: 1 });
  expect(await after.due(query)).toEqual([]);
});

test('a step never rests past what another process has addressed to the former id', async () => {
  const { before, after } = await openBoth();
  await say(after, 'one', 'adjuster');
  const working = await take(after, present, 'new worker', 10);
  await say(before, 'two', 'assessor');
  const author = { kind: 'agent' as const, id: 'adjuster' as AgentId, name: 'Adjuster' };
  const body = { content: 'answer' };
  const draft = { id: 'three' as EventId, author, to: [], kind: 'message' as const, body };
  const done = await after.step(working, {
    patch: { processed: 1 },
    events: [{ conversation: log.conversation, draft, at: 2, tokens: 1, ifTaken: 'spare' }],
    rests: true,
  });
  expect(done?.record).toMatchObject({ owner: 'new worker', processed: 1 });
  expect(await after.addressed(present, { after: 1, upTo: 3 })).toEqual([2]);
});

test('events are read with the present id and stay as they were written', async () => {
  const { before, after } = await openBoth();
  await say(before, 'one', 'assessor');
  await say(after, 'two', 'assessor');
  expect(await after.read(log, { after: 0 })).toMatchObject([
    { to: ['adjuster'], formerly: { to: ['assessor'] } },
    { to: ['adjuster'] },
  ]);
  expect((await before.read(log, { after: 0 })).map(({ to }) => to)).toEqual([['assessor'], ['adjuster']]);
  expect((await after.verify(log)).problems).toEqual([]);
});

test('a directory with one owner waits for no lease of a dead process', async () => {
  const { before, after } = await openBoth(true);
  await take(before, old, 'dead', 10);
  expect(await take(after, present, 'new', 20)).toMatchObject({ took: ['assessor'] });
});

test('an agent that is renamed again, or back, goes on from its last record', async () => {
  const before = createStore(await openDriver());
  const named = (...pairs: [string, string][]) =>
    withFormerIds(before, {
      former: new Map(pairs) as typeof former,
      soleOwner: false,
      countTokens: () => 1,
    });
  const work = async (store: Store, agent: string, now: number) => {
    const record = await take(store, { ...log, agent: agent as AgentId }, 'worker', now);
    const next = { processed: record.processed + 1, turnNo: record.turnNo + 1 };
    await store.update(record, {
      owner: '',
      until: 0,
      processed: next.processed,
      state: { turnNo: next.turnNo },
    });
    return next;
  };
  for (const id of ['one', 'two', 'three', 'four', 'five']) await say(before, id, 'nobody');
  expect(await work(before, 'assessor', 10)).toEqual({ processed: 1, turnNo: 1 });
  expect(await work(named(['assessor', 'adjuster']), 'adjuster', 20)).toEqual({ processed: 2, turnNo: 2 });
  const again = named(['assessor', 'examiner'], ['adjuster', 'examiner']);
  expect(await work(again, 'examiner', 30)).toEqual({ processed: 3, turnNo: 3 });
  const back = named(['examiner', 'assessor'], ['adjuster', 'assessor']);
  expect(await work(back, 'assessor', 40)).toEqual({ processed: 4, turnNo: 4 });
  const inOtherOrder = named(['adjuster', 'examiner'], ['assessor', 'examiner']);
  expect(await work(inOtherOrder, 'examiner', 50)).toEqual({ processed: 5, turnNo: 5 });
  expect(await back.acquire({ ...log, agent: 'other' as AgentId }, lease('worker', 60))).toMatchObject({
    kind: 'acquired',
  });
});
