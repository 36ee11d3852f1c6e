import * as z from 'zod';
import { TroupeError } from '../base/errors.ts';
import {
  type Event,
  PromptReceipt,
  type ActorAddress,
  type ConversationId,
  type EventKind,
  type TenantId,
} from '../events/index.ts';
import type {
  ConversationPlace,
  ConversationsQuery,
  EventRow,
  EntryKey,
  StoreDriver,
  StepAppend,
} from './driver.ts';
import {
  appendedEvent,
  type Damage,
  decodeEvent,
  encodeErased,
  encodeEvent,
  isSamePayload,
  reasonOf,
} from './event-row.ts';
import type {
  Appended,
  ConversationKey,
  ConversationLine,
  EffectRecord as EffectRecordType,
  NewEvent,
  LogPage,
  Store,
  RecordEvent,
  StepEvents,
} from './store.ts';
import { type Slices, WHOLE } from '../base/slices.ts';
import { verifyLog } from './verify-log.ts';
import { decodeActor, decodeActorOrThrow, encodePatch, isNewer, patchedRecord } from './actor-row.ts';

const EffectStart = z.object({ status: z.literal('started'), argsHash: z.string(), by: z.string() });
const EffectRecord = z.discriminatedUnion('status', [
  EffectStart,
  EffectStart.extend({
    status: z.literal('settled'),
    outcome: z.enum(['done', 'failed', 'lost']),
    data: z.string(),
  }),
]);

/** Tenant of the store's own entries. No tenant can have this id, so they never collide with those of a tenant. */
const STORE_ITSELF = '-';

/** Bounds of one page, so that reading and folding it takes a few milliseconds. */
const SLICE_EVENTS = 250;
const SLICE_BYTES = 512 * 1024;
/** Rows decoded before control returns to the event loop. */
const SLICE_DECODED = 100;

/** Called for a damaged row each time it is read. */
export type OnDamage = (log: ConversationKey, damage: Damage) => void;

type Decode = (log: ConversationKey, row: EventRow) => Event;

/** Adds types and validation to a driver. Keeps no state. zod validates what is read, never what is written. */
export function createStore(
  driver: StoreDriver,
  slices: Slices = WHOLE,
  onDamage: OnDamage = () => {},
): Store {
  function decode(log: ConversationKey, row: EventRow): Event {
    const { event, damage } = decodeEvent(log, row);
    if (damage) onDamage(log, damage);
    return event;
  }

  return {
    ...createLogMethods(driver, decode),
    ...createPagedReads(driver, decode, slices),
    verify: (log, { after = 0 } = {}) => verifyLog({ driver, slices }, log, after),
    ...createConversationMethods(driver),
    ...createActorMethods(driver, decode),
    ...createEffectMethods(driver),
    ...createEntryMethods(driver),
    ...createDerivedMethods(driver),
    head: driver.head,
    requestAbort: driver.requestAbort,
    park: driver.park,
    expire: driver.expire,
    deleteConversation: driver.deleteConversation,
    async replaceEvents({ tenant, conversation }, events) {
      const left = events.map((event) => ({ id: event.id, ...encodeErased(event) }));
      await driver.replaceData(
        { tenant, conversation },
        left.map(({ id, data }) => ({ id, data })),
      );
      return left.map(({ hash }) => hash);
    },
    entries: driver,
    scrub: driver.scrub,
    inbox: driver.inbox,
    check: driver.check,
    close: driver.close,
  };
}

type LogMethods = Pick<Store, 'append' | 'readById' | 'markOf' | 'addressed'>;

function createLogMethods(driver: StoreDriver, decode: Decode): LogMethods {
  async function append(log: ConversationKey, events: readonly NewEvent[]): Promise<Appended[]> {
    const rows = events.map((event) => encodeEvent(log, event));
    const outcomes = await driver.append(rows);
    const appended: Appended[] = [];
    for (const [index, event] of events.entries()) {
      const outcome = outcomes[index]!;
      if (outcome.kind === 'appended') {
        appended.push({ kind: 'appended', event: appendedEvent(log, event, outcome.seq) });
        continue;
      }
      const { id } = event.draft;
      const row = await readRow(log, id);
      if (!row)
        throw new TroupeError('store_unavailable', `event ${id} was removed meanwhile; try again`, { id });
      if (!isSamePayload(row, rows[index]!)) throw conflict(log, id, row.seq);
      appended.push({ kind: 'exists', event: decode(log, row) });
    }
    return appended;
  }

  async function readRow({ tenant, conversation }: ConversationKey, id: string): Promise<EventRow | null> {
    return driver.readEvent({ tenant, conversation, id });
  }

  async function readById(log: ConversationKey, id: string): Promise<Event | null> {
    const row = await readRow(log, id);
    return row && decode(log, row);
  }

  return {
    append,
    readById,
    async markOf({ tenant, conversation }, seq) {
      const range = { after: seq - 1, upTo: seq, limit: 1 };
      const [row] = await driver.readEvents({ tenant, conversation, ...range });
      return row ? (row.chain ?? `${row.id} ${row.at} ${row.hash}`) : null;
    },
    addressed: (address, range) => driver.addressed({ ...address, ...range }),
  };
}

function createPagedReads(
  driver: StoreDriver,
  decode: Decode,
  slices: Slices,
): Pick<Store, 'read' | 'readPage'> {
  async function readPage(
    log: ConversationKey,
    { after, upTo }: { after: number; upTo?: number },
  ): Promise<LogPage> {
    if (upTo !== undefined && after >= upTo) return { events: [], isLast: true };
    const bounds = { limit: SLICE_EVENTS, maxBytes: SLICE_BYTES };
    const { rows, isFull } = await readRows(log, { after, upTo, ...bounds });
    const isLast = !isFull || rows.at(-1)?.seq === upTo;
    if (!isLast) await slices.next();
    return { events: await decodeEvents(log, rows), isLast };
  }

  async function decodeEvents(log: ConversationKey, rows: readonly EventRow[]): Promise<Event[]> {
    const events: Event[] = [];
    for (const row of rows) {
      if (events.length > 0 && events.length % SLICE_DECODED === 0) await slices.next();
      events.push(decode(log, row));
    }
    return events;
  }

  /** `isFull`: a bound ended the read, so more rows may follow. */
  async function readRows(
    { tenant, conversation }: ConversationKey,
    {
      after,
      upTo,
      limit,
      maxBytes,
    }: { after: number; upTo?: number | undefined; limit: number; maxBytes: number },
  ): Promise<{ rows: EventRow[]; bytes: number; isFull: boolean }> {
    const range = { after, limit, maxBytes, ...(upTo !== undefined && { upTo }) };
    const rows = await driver.readEvents({ tenant, conversation, ...range });
    // The driver counts `maxBytes` in the same way.
    const bytes = rows.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
    return { rows, bytes, isFull: rows.length >= limit || bytes >= maxBytes };
  }

  return {
    readPage,
    async read(log, { after, upTo, limit = Number.MAX_SAFE_INTEGER, maxBytes }) {
      const events: Event[] = [];
      let bytes = 0;
      for (let at = after; ;) {
        const left = limit - events.length;
        const most = Math.min(SLICE_BYTES, (maxBytes ?? Infinity) - bytes);
        const page = await readRows(log, {
          after: at,
          upTo,
          limit: Math.min(SLICE_EVENTS, left),
          maxBytes: most,
        });
        events.push(...(await decodeEvents(log, page.rows)));
        bytes += page.bytes;
        at = page.rows.at(-1)?.seq ?? at;
        if (!page.isFull || events.length >= limit || at === upTo || bytes >= (maxBytes ?? Infinity))
          return events;
        await slices.next();
      }
    },
  };
}

type ConversationMethods = Pick<Store, 'conversations' | 'listConversations'>;

function createConversationMethods(driver: StoreDriver): ConversationMethods {
  async function listConversations(tenant: string, query: Omit<ConversationsQuery, 'tenant'>) {
    const { rows, next } = await driver.conversations({ tenant, ...query });
    return { conversations: rows as ConversationLine[], next };
  }

  return {
    listConversations,
    async conversations(tenant, limit) {
      const found: ConversationLine[] = [];
      let before: ConversationPlace | null = null;
      do {
        const rest = { limit: limit - found.length, ...(before && { before }) };
        const { conversations, next } = await listConversations(tenant, rest);
        found.push(...conversations);
        before = next;
      } while (before && found.length < limit);
      return found;
    },
  };
}

type EffectMethods = Pick<Store, 'journal' | 'readJournal' | 'startEffect' | 'settleEffect'>;

function createEffectMethods(driver: StoreDriver): EffectMethods {
  async function settleEffect(
    tenant: string,
    id: string,
    stored: string,
    end: { outcome: 'done' | 'failed' | 'lost'; data: string },
  ): Promise<EffectRecordType> {
    const key: EntryKey = { tenant, namespace: 'effect', key: id };
    const record = parseEntry(EffectRecord, stored, `effect ${id}`);
    if (record.status === 'settled') return record;
    const settled: EffectRecordType = { ...record, status: 'settled', ...end };
    if (await driver.swap(key, stored, JSON.stringify(settled))) return settled;
    // Another caller has settled the effect, and its result counts.
    const theirs = await driver.readEntry(key);
    if (theirs === null)
      throw new TroupeError('internal', `effect ${id} was settled before it was started`, { id });
    return parseEntry(EffectRecord, theirs, `effect ${id}`);
  }

  return {
    settleEffect,
    async journal(tenant, key, data, at) {
      return (await driver.putOnce({ tenant, namespace: 'journal', key }, data, at)).data;
    },
    readJournal: (tenant, key) => driver.readEntry({ tenant, namespace: 'journal', key }),
    async startEffect(tenant, id, { argsHash, by, at }) {
      const record: EffectRecordType = { status: 'started', argsHash, by };
      const put = await driver.putOnce({ tenant, namespace: 'effect', key: id }, JSON.stringify(record), at);
      const stored = put.data;
      if (put.inserted) return { mine: true, record, stored };
      return { mine: false, record: parseEntry(EffectRecord, stored, `effect ${id}`), stored };
    },
  };
}

type EntryMethods = Pick<
  Store,
  | 'putArtifact'
  | 'readArtifact'
  | 'putReceipt'
  | 'readReceipt'
  | 'putBody'
  | 'readBody'
  | 'get'
  | 'compareAndSet'
  | 'meta'
>;

function createEntryMethods(driver: StoreDriver): EntryMethods {
  async function put(key: EntryKey, data: string, at: number): Promise<void> {
    await driver.putOnce(key, data, at);
  }

  async function readReceipt(tenant: string, turn: string, step: number) {
    const text = await driver.readEntry({ tenant, namespace: 'prompt', key: `${turn}:${step}` });
    return text === null ? null : parseEntry(PromptReceipt, text, `the receipt of ${turn} step ${step}`);
  }

  return {
    readReceipt,
    putArtifact: (log, id, content, at) =>
      put({ tenant: log.tenant, namespace: 'artifact', key: `${log.conversation}/${id}` }, content, at),
    readArtifact: (log, id) =>
      driver.readEntry({ tenant: log.tenant, namespace: 'artifact', key: `${log.conversation}/${id}` }),
    async putReceipt(tenant, receipt, at) {
      const { key, data } = receiptEntry(tenant, receipt, at);
      await put(key, data, at);
    },
    putBody: (tenant, hash, text, at) => put({ tenant, namespace: 'body', key: hash }, text, at),
    readBody: (tenant, hash) => driver.readEntry({ tenant, namespace: 'body', key: hash }),
    get: (tenant, key) => driver.readEntry({ tenant, namespace: 'note', key }),
    async compareAndSet(tenant, key, from, to) {
      const entry: EntryKey = { tenant, namespace: 'note', key };
      if (from !== null && (await driver.swap(entry, from, to))) return to;
      return (await driver.putOnce(entry, to, 0)).data;
    },
    async meta(key, value) {
      return (await driver.putOnce({ tenant: STORE_ITSELF, namespace: 'meta', key }, value, 0)).data;
    },
  };
}

function conflict(log: ConversationKey, id: string, seq: number): TroupeError {
  const { conversation } = log;
  const message = `event ${id} of conversation ${conversation} is stored with another payload; use a new id`;
  return new TroupeError('event_conflict', message, { id, conversation, seq });
}

function parseEntry<T>(schema: z.ZodType<T>, text: string, name: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TroupeError('store_corrupt', `${name} cannot be read: not JSON`, { name }, { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new TroupeError('store_corrupt', `${name} cannot be read: ${reasonOf(parsed.error)}`, { name });
}

type ActorMethods = Pick<Store, 'acquire' | 'update' | 'step' | 'readActor' | 'listActors' | 'claim' | 'due'>;

function createActorMethods(
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

function receiptEntry(
  tenant: string,
  receipt: PromptReceipt,
  at: number,
): { key: EntryKey; data: string; at: number } {
  if (receipt.turn === null)
    throw new TroupeError('internal', 'a prompt outside of a turn has no receipt', {});
  const key: EntryKey = { tenant, namespace: 'prompt', key: `${receipt.turn}:${receipt.step}` };
  return { key, data: JSON.stringify(receipt), at };
}

type DerivedMethods = Pick<Store, 'putDerived' | 'readDerived' | 'derivedKeys' | 'removeDerived'>;

const SLICE_KEYS = 1_000;
/** Sorts after every ASCII character of a key. */
const LAST_KEY = '\x7f';

function createDerivedMethods(driver: StoreDriver): DerivedMethods {
  function entryOf({ tenant, conversation }: ConversationKey, key: string): EntryKey {
    return { tenant, namespace: 'derived', key: `${conversation}/${key}` };
  }

  return {
    async putDerived(log, key, text, at) {
      await driver.putOnce(entryOf(log, key), text, at);
    },
    readDerived: (log, keys) => driver.readEntries(keys.map((key) => entryOf(log, key))),
    async derivedKeys(log, prefix) {
      const { key: start, ...place } = entryOf(log, prefix);
      const found: string[] = [];
      for (let after = start; ;) {
        const page = await driver.entryKeys({
          ...place,
          after,
          before: `${start}${LAST_KEY}`,
          limit: SLICE_KEYS,
        });
        found.push(...page.map((key) => key.slice(log.conversation.length + 1)));
        after = page.at(-1) ?? after;
        if (page.length < SLICE_KEYS) return found;
      }
    },
    removeDerived: (log, keys) => driver.removeEntries(keys.map((key) => entryOf(log, key))),
  };
}
