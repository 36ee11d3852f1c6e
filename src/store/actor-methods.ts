import { TroupeError } from '../base/errors.ts';
import {
  type ActorAddress,
  type ConversationId,
  type Event,
  type EventKind,
  type PromptReceipt,
  type TenantId,
} from '../events/index.ts';
import { decodeActor, decodeActorOrThrow, encodePatch, isNewer, patchedRecord } from './actor-row.ts';
import type { EntryKey, EventRow, StepAppend, StoreDriver } from './driver.ts';
import { appendedEvent, encodeEvent } from './event-row.ts';
import type { ConversationKey, RecordEvent, StepEvents, Store } from './store.ts';

/** Not a legal tenant id, so that entries of the store and of a tenant never collide. */
const STORE_ITSELF = '-';

type ActorMethods = Pick<Store, 'acquire' | 'update' | 'step' | 'readActor' | 'listActors' | 'claim' | 'due'>;

export function createActorMethods(
  driver: StoreDriver,
  decode: (log: ConversationKey, row: EventRow) => Event,
): ActorMethods {
  const decoded = (row: EventRow) =>
    decode({ tenant: row.tenant as TenantId, conversation: row.conversation as ConversationId }, row);

  return {
    async acquire(address, lease, told) {
      const outcome = await driver.acquire(address, lease, told && ((rows) => told(rows.map(decoded))));
      if (outcome.kind === 'busy') return outcome;
      try {
        const record = decodeActorOrThrow(address, outcome.row);
        return { kind: 'acquired', record };
      } catch (error) {
        // Releases the lease: a process that cannot read the record must not block one that can.
        await driver.compareAndSet(address, { fence: outcome.row.fence }, { owner: '', until: 0 });
        throw error;
      }
    },
    async update(base, patch, expect) {
      const { tenant, conversation, agent, fence } = base;
      const row = await driver.compareAndSet(
        { tenant, conversation, agent },
        { fence, turn: base.turn?.id ?? null, ...expect },
        encodePatch(base, patch),
      );
      return row && patchedRecord(base, patch, row);
    },
    step: createStep(driver),
    async readActor(address) {
      const row = await driver.readActor(address);
      return row && decodeActorOrThrow(address, row);
    },
    async listActors({ tenant, conversation }) {
      const rows = await driver.listActors({ tenant, conversation });
      return rows.map((row) => {
        const address = { tenant, conversation, agent: row.agent } as ActorAddress;
        const record = decodeActor(address, row);
        if (typeof record !== 'string') return record;
        return isNewer(record) ? { address, newer: record } : { address, corrupt: record };
      });
    },
    async claim(name, lease) {
      const key = { tenant: STORE_ITSELF, conversation: STORE_ITSELF, agent: name };
      return (await driver.acquire(key, lease)).kind === 'acquired';
    },
    async due(query) {
      return (await driver.due(query)) as ActorAddress[];
    },
  };
}

function createStep(driver: StoreDriver): Store['step'] {
  return async (base, asked) => {
    const { patch, expect, events, receipts = [], isRepeated, rests, told } = asked;
    const { tenant, conversation, agent, fence } = base;
    const rows = events.map((event) => ({
      row: encodeEvent({ tenant, conversation: event.conversation }, event),
      ifTaken: event.ifTaken,
    }));
    const isTaking = expect?.freeAt !== undefined;
    const entries = receipts.map(({ receipt, at }) => receiptEntry(tenant, receipt, at));
    const outcome = await driver.step(
      { tenant, conversation, agent },
      {
        ...(isTaking ? { takes: true as const } : {}),
        expect: {
          fence,
          turn: base.turn?.id ?? null,
          ...(isTaking && { processed: base.processed }),
          ...expect,
        },
        change: encodePatch(base, patch),
        ...(entries.length > 0 && { entries }),
        ...(rows.length > 0 && { events: rows }),
        ...(isRepeated && { isRepeated }),
        ...(rests && { rests }),
        ...(told && { told: (appended) => told(storedEvents(tenant, events, appended)) }),
      },
    );
    return outcome && { record: patchedRecord(base, patch, outcome.row), isAddressed: outcome.isAddressed };
  };
}

function storedEvents(
  tenant: TenantId,
  events: readonly RecordEvent[],
  appended: readonly StepAppend[],
): StepEvents {
  const stored: { appended: Event[]; there: Event[]; taken: EventKind[] } = {
    appended: [],
    there: [],
    taken: [],
  };
  for (const [index, event] of events.entries()) {
    const place = appended[index]!;
    if (place.kind === 'taken') {
      stored.taken.push(event.draft.kind);
      continue;
    }
    const placed = appendedEvent({ tenant, conversation: event.conversation }, event, place.seq);
    stored[place.kind].push(place.id === placed.id ? placed : { ...placed, id: place.id as Event['id'] });
  }
  return stored;
}

/** The entry that keeps the receipt of a prompt. */
export function receiptEntry(
  tenant: string,
  receipt: PromptReceipt,
  at: number,
): { key: EntryKey; data: string; at: number } {
  if (receipt.turn === null)
    throw new TroupeError('internal', 'a prompt outside of a turn has no receipt', {});
  const key: EntryKey = { tenant, namespace: 'prompt', key: `${receipt.turn}:${receipt.step}` };
  return { key, data: JSON.stringify(receipt), at };
}
