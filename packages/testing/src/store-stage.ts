import assert from 'node:assert/strict';
import {
  type ErrorCode,
  TroupeError,
  ActorAddress,
  type ActorRecord,
  type AgentId,
  type EventDraft,
  EventId,
  turnId,
  createStore,
  type StoreDriver,
  type NewEvent,
  type ConversationKey,
  type Store,
} from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';

/** A new, empty store and its driver. */
interface StoreStage {
  driver: StoreDriver;
  store: Store;
}

/** A case before it has a store to run against. */
export type StoreCase = (open: () => Promise<StoreDriver>) => ConformanceCase;

export function on(group: string, name: string, run: (stage: StoreStage) => Promise<void>): StoreCase {
  return (open) => ({
    group,
    name,
    async run() {
      const driver = await open();
      try {
        await run({ driver, store: createStore(driver) });
      } finally {
        await driver.close();
      }
    },
  });
}

/** Number of concurrent operations that even a slow server answers before their timeout. */
const LOT = 20;

export async function inLots<T>(items: readonly T[], run: (item: T) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < items.length; from += LOT)
    await Promise.all(items.slice(from, from + LOT).map(run));
}

export function addressOf(agent = 'worker', conversation = 'talk', tenant = 'acme'): ActorAddress {
  return ActorAddress.parse({ tenant, conversation, agent });
}

export function logOf(conversation = 'talk', tenant = 'acme'): ConversationKey {
  return addressOf('worker', conversation, tenant);
}

export function draftOf(
  id: string,
  { to = [], content = id }: { to?: string[]; content?: string } = {},
): EventDraft {
  return {
    id: EventId.parse(id),
    author: { kind: 'user', id: 'ada', name: 'Ada' },
    to: to as AgentId[],
    kind: 'message',
    body: { content },
  };
}

export function entryOf(
  id: string,
  options: { to?: string[]; content?: string; at?: number } = {},
): NewEvent {
  return { draft: draftOf(id, options), at: options.at ?? 1000, tokens: 3 };
}

export async function contents(store: Store, log: ConversationKey): Promise<string[]> {
  return (await store.read(log, { after: 0 })).map((event) =>
    event.kind === 'message' ? event.body.content : event.kind,
  );
}

/** Leases a free actor at time `now` for 100 ms. */
export async function acquired(store: Store, address: ActorAddress, now = 1000): Promise<ActorRecord> {
  const outcome = await store.acquire(address, { owner: 'me', now, until: now + 100 });
  assert.equal(outcome.kind, 'acquired');
  return (outcome as { record: ActorRecord }).record;
}

export function pinOf(address: ActorAddress, number = 1): NonNullable<ActorRecord['turn']> {
  const id = turnId(address, number);
  return { id, upTo: 1, inputs: [1], attempt: 0, live: {}, join: 'full', baseline: 'b1', hop: 0 };
}

export function timerOf(at: number): ActorRecord['timers'][number] {
  return { at, posts: [{ conversation: logOf('elsewhere').conversation, draft: draftOf(`timer-${at}`) }] };
}

/** An actor whose lease ends at 1100, with turn 1 pinned. */
export async function pinned(store: Store, address: ActorAddress): Promise<ActorRecord> {
  const record = await store.update(await acquired(store, address), { state: { turn: pinOf(address) } });
  assert.ok(record);
  return record;
}

export async function rejectsWith(code: ErrorCode, promise: Promise<unknown>): Promise<TroupeError> {
  const thrown = await promise.then(
    () => assert.fail(`nothing was thrown; expected ${code}`),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof TroupeError, String(thrown));
  assert.equal(thrown.code, code, thrown.message);
  return thrown;
}
