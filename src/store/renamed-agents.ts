import {
  type ActorAddress,
  type ActorRecord,
  type Author,
  type AgentId,
  type Event,
  type EventDraft,
  type FormerIds,
  parseTurnId,
  presentAddress,
  renamedId,
  runtimeId,
  SYSTEM_AUTHOR,
  turnId,
  type TurnId,
  withAgentIds,
  withPresentIds,
} from '../events/index.ts';
import type { Acquired, ActorPatch, ConversationKey, NewEvent, Store } from './store.ts';

/**
 * A store for a company with renamed agents. Its callers see present ids only.
 *  N1  The log stays as it was written. Its events are read with the present ids; `formerly` keeps the ids that prompts have
 *      shown.
 *  N2  An actor has one record, under its present id. The first process that takes its lease also takes over the records
 *      under its former ids and holds their leases for ever. So a process that knows only a former id waits, and the two
 *      never run at the same time.
 *  N3  A turn that was pinned under a former id ends under that id, so that its events are the same in every attempt.
 *  N4  A step does not let a renamed actor rest while another process may still write to its former id, because the driver
 *      looks for events under one id only. The actor then reads its log itself.
 */
export function withFormerIds(store: Store, options: RenamedOptions): Store {
  const names = namesOf(options.former);
  const renamed = { store, options, names };
  return { ...store, ...logMethods(renamed), ...actorMethods(renamed), ...receiptMethods(renamed) };
}

interface RenamedOptions {
  former: FormerIds;
  /** This process alone uses the data directory, so leases of other processes are dead. */
  soleOwner: boolean;
  countTokens: (text: string) => number;
}

interface Renamed {
  store: Store;
  options: RenamedOptions;
  names: Names;
}

interface Names {
  formerOf: ReadonlyMap<AgentId, readonly AgentId[]>;
  address: (address: ActorAddress) => ActorAddress;
  before: (address: ActorAddress) => ActorAddress[];
  event: (event: Event) => Event;
  draft: (draft: EventDraft) => EventDraft;
}

function namesOf(former: FormerIds): Names {
  const formerOf = new Map<AgentId, AgentId[]>();
  for (const [id, present] of former) formerOf.set(present, [...(formerOf.get(present) ?? []), id]);
  return {
    formerOf,
    address: (address) => presentAddress(former, address),
    before: (address) => (formerOf.get(address.agent) ?? []).map((agent) => ({ ...address, agent })),
    event: (event) => withPresentIds(former, event),
    draft: (draft) => withAgentIds(draft, (id) => former.get(id) ?? id),
  };
}

type LogMethods = Pick<
  Store,
  'append' | 'step' | 'read' | 'readPage' | 'readById' | 'addressed' | 'replaceEvents'
>;

function logMethods({ store, options, names }: Renamed): LogMethods {
  /** N3: an event of a turn gets the id of the author with which the turn began. */
  async function asWritten<E extends { draft: EventDraft }>(log: ConversationKey, given: E): Promise<E> {
    const { formerly, ...draft } = given.draft as Event;
    if (formerly) return { ...given, draft: asSaid(draft as EventDraft, formerly) };
    const agent = draft.turn === undefined ? undefined : parseTurnId(draft.turn)?.agent;
    const isOld = agent !== undefined && options.former.get(agent) === draft.author.id;
    if (!isOld) return { ...given, draft: names.draft(draft) };
    const started = await store.readById(log, runtimeId(draft.turn ?? '', 'started'));
    const author: Author = started?.author ?? { ...draft.author, id: agent };
    return {
      ...given,
      draft: { ...withAgentIds(draft, (id) => (id === draft.author.id ? agent : id)), author },
    };
  }

  return {
    async append(log, events) {
      const written = await Promise.all(events.map((event) => asWritten(log, event)));
      const appended = await store.append(log, written);
      return appended.map(({ kind, event }) => ({ kind, event: names.event(event) }));
    },
    async step(base, { events, told, rests, ...rest }) {
      const { tenant } = base;
      // N4.
      const mayRest = options.soleOwner || !names.formerOf.has(base.agent);
      const written = await Promise.all(
        events.map((event) => asWritten({ tenant, conversation: event.conversation }, event)),
      );
      return store.step(base, {
        ...rest,
        ...(rests && mayRest && { rests }),
        events: written,
        ...(told && {
          told: ({ appended, there, taken }) =>
            told({ appended: appended.map(names.event), there: there.map(names.event), taken }),
        }),
      });
    },
    read: async (log, range) => (await store.read(log, range)).map(names.event),
    async readPage(log, range) {
      const { events, isLast } = await store.readPage(log, range);
      return { events: events.map(names.event), isLast };
    },
    async readById(log, id) {
      const event = await store.readById(log, id);
      return event && names.event(event);
    },
    async addressed(given, range) {
      const address = names.address(given);
      const all = [address, ...names.before(address)].map((each) => store.addressed(each, range));
      return [...new Set((await Promise.all(all)).flat())].toSorted((a, b) => a - b);
    },
    async replaceEvents(log, events) {
      return store.replaceEvents(log, await Promise.all(events.map((event) => inLog(store, log, event))));
    },
  };
}

/** A draft copied from an event that was read, with the ids of the log from which it was read. */
function asSaid(draft: EventDraft, { author, to }: NonNullable<Event['formerly']>): EventDraft {
  return { ...draft, author: { ...draft.author, ...(author && { id: author }) }, ...(to && { to }) };
}

async function inLog(store: Store, log: ConversationKey, event: Event): Promise<Event> {
  const { formerly: _, ...present } = event;
  const stored = await store.readById(log, event.id);
  if (!stored) return present;
  const ids: AgentId[] = [];
  withAgentIds(stored, (id) => {
    ids.push(id);
    return id;
  });
  return withAgentIds(present, (id) => ids.shift() ?? id);
}

type ActorMethods = Pick<Store, 'acquire' | 'readActor' | 'listActors' | 'park' | 'requestAbort' | 'due'>;

function actorMethods(renamed: Renamed): ActorMethods {
  const { store, options, names } = renamed;

  /** The record under a former id that no process has taken over yet. */
  async function untaken(address: ActorAddress): Promise<ActorRecord | null> {
    for (const before of names.before(address)) {
      const record = await store.readActor(before);
      if (record && !isTaken(record)) return record;
    }
    return null;
  }

  async function readActor(given: ActorAddress): Promise<ActorRecord | null> {
    const address = names.address(given);
    const own = await store.readActor(address);
    const { agent } = address;
    if (own || !names.formerOf.has(agent)) return own;
    const before = await untaken(address);
    return before && { ...before, agent };
  }

  return {
    readActor,
    async acquire(given, lease, told) {
      const address = names.address(given);
      const hear = told && ((events: readonly Event[]) => told(events.map(names.event)));
      if (!names.formerOf.has(address.agent)) return store.acquire(address, lease, hear);
      const acquired = await acquireOwn(renamed, address, lease, hear);
      if (acquired.kind === 'busy') return acquired;
      return takeOver(renamed, acquired.record, { now: lease.now, told: hear });
    },
    async listActors(log) {
      const listed = await store.listActors(log);
      const has = new Set(listed.map((each) => ('address' in each ? each.address.agent : each.agent)));
      return listed.flatMap((each) => {
        if ('address' in each) return { ...each, address: names.address(each.address) };
        const { agent } = names.address(each);
        if (agent === each.agent) return each;
        return has.has(agent) || isTaken(each) ? [] : { ...each, agent };
      });
    },
    async park(given, parked, expected) {
      const address = names.address(given);
      const own = names.formerOf.has(address.agent) ? await store.readActor(address) : null;
      const before = own ? null : await untaken(address);
      return store.park(before ?? address, parked, expected);
    },
    async requestAbort(given, turn) {
      const address = names.address(given);
      if (await store.requestAbort(address, turn)) return true;
      for (const before of names.before(address)) if (await store.requestAbort(before, turn)) return true;
      return false;
    },
    async due(query) {
      const found = await store.due(query);
      // `found` lacks records under former ids, which are leased for ever. This query ignores leases.
      const held = options.soleOwner ? [] : await store.due({ ...query, now: Number.MAX_SAFE_INTEGER });
      const due = new Map<string, ActorAddress>();
      for (const address of [...found, ...held.filter(({ agent }) => options.former.has(agent))]) {
        const present = names.address(address);
        if (present !== address && (await isSettled(store, address, present))) continue;
        due.set(`${present.tenant}/${present.conversation}/${present.agent}`, present);
      }
      return [...due.values()];
    },
  };
}

/** End of a lease that is held for ever. A query of `due` with the maximum as `now` still finds its actor. */
const FOR_EVER = Number.MAX_SAFE_INTEGER - 1;
const TAKEN = 'renamed:';

function isTaken({ owner }: { owner: string }): boolean {
  return owner.startsWith(TAKEN);
}

interface Taking {
  now: number;
  told: ((events: readonly Event[]) => Promise<void>) | undefined;
}

/** N2. `busy`: another process works under a former id, so the lease that was just taken is released. */
async function takeOver(renamed: Renamed, acquired: ActorRecord, taking: Taking): Promise<Acquired> {
  const { store, names } = renamed;
  const olds: ActorRecord[] = [];
  for (const before of names.before(acquired)) {
    if (acquired.took?.includes(before.agent)) continue;
    const old = await hold(renamed, before, acquired.agent, taking);
    if (old.kind === 'acquired') olds.push(old.record);
    else {
      await store.update(acquired, { owner: '', until: 0 });
      return old;
    }
  }
  // If the agent was renamed more than once, or back, the record of its last id has already taken over the others.
  const over = new Set(olds.flatMap(({ took = [] }) => took));
  let record = acquired;
  let isUnused = hasDoneNothing(acquired) || over.has(acquired.agent);
  for (const old of olds) {
    const isOver = over.has(old.agent);
    if (!isOver) await askAgain(renamed, { record, old, isUnused }, taking.now);
    const written = await store.update(
      record,
      isOver ? takenFrom(record, old) : patchFrom(record, old, isUnused),
    );
    if (!written) return { kind: 'busy', until: taking.now };
    record = await withAbort(store, written, old.abort);
    isUnused &&= isOver || hasDoneNothing(old);
    await settle(store, old, record.processed);
  }
  return { kind: 'acquired', record };
}

/** Takes the lease of an agent, even one held for ever for a later id that is now a former one. */
async function acquireOwn(
  { store, names }: Renamed,
  address: ActorAddress,
  lease: { owner: string; now: number; until: number },
  told: Taking['told'],
): Promise<Acquired> {
  const acquired = await store.acquire(address, lease, told);
  if (acquired.kind === 'acquired' || acquired.until !== FOR_EVER) return acquired;
  const held = await store.readActor(address);
  const isOurs = names.before(address).some(({ agent }) => held?.owner === `${TAKEN}${agent}`);
  return isOurs ? store.acquire(address, { ...lease, now: FOR_EVER + 1 }, told) : acquired;
}

function takenFrom(record: ActorRecord, old: ActorRecord): ActorPatch {
  return { state: { took: [...(record.took ?? []), old.agent] } };
}

/** Takes the lease of a record under a former id for ever. Returns `busy` while another process holds it. */
async function hold(
  { store, options }: Renamed,
  { tenant, conversation, agent }: ActorAddress,
  present: AgentId,
  { now, told }: Taking,
): Promise<Acquired> {
  const before = { tenant, conversation, agent };
  const lease = { owner: `${TAKEN}${present}`, now, until: FOR_EVER };
  const first = await store.acquire(before, lease, told);
  if (first.kind === 'acquired') return first;
  const held = await store.readActor(before);
  if (held && isTaken(held)) return { kind: 'acquired', record: held };
  return held && options.soleOwner ? store.acquire(before, { ...lease, now: held.until + 1 }, told) : first;
}

function hasDoneNothing({ turnNo, turn, processed }: ActorRecord): boolean {
  return turnNo === 0 && turn === null && processed === 0;
}

/** The record continues where the old one stopped. A record that already has work of its own gets only the timers. */
function patchFrom(record: ActorRecord, old: ActorRecord, isUnused: boolean): ActorPatch {
  const took = [...(record.took ?? []), old.agent];
  const timers = [...record.timers, ...old.timers];
  if (!isUnused) return { state: { took, timers } };
  const { turnNo, lastTurn, snapshot, machineVersion, session, cursor, turn, lost } = old;
  return {
    processed: old.processed,
    ...(old.parked !== null && { parked: old.parked }),
    state: { took, timers, turnNo, lastTurn, snapshot, machineVersion, session, cursor, turn, lost },
  };
}

async function withAbort(store: Store, record: ActorRecord, abort: TurnId | null): Promise<ActorRecord> {
  if (abort === null || record.turn?.id !== abort) return record;
  await store.requestAbort(record, abort);
  return { ...record, abort };
}

/** Asks for a turn about the inputs of one id that the record of the other id counts as processed. */
async function askAgain(
  { store, options }: Renamed,
  { record, old, isUnused }: { record: ActorRecord; old: ActorRecord; isUnused: boolean },
  at: number,
): Promise<void> {
  const { tenant, conversation, agent } = record;
  const upTo = isUnused ? old.processed : record.processed;
  const passedOver = [record, old].map((each) => store.addressed(each, { after: each.processed, upTo }));
  const given = isUnused ? [] : (old.turn?.inputs ?? []);
  const inputs = [...new Set([...(await Promise.all(passedOver)).flat(), ...given])].toSorted(
    (a, b) => a - b,
  );
  if (inputs.length === 0) return;
  const draft: EventDraft = {
    id: renamedId(old.agent, old.fence),
    author: SYSTEM_AUTHOR,
    to: [agent],
    kind: 'command',
    body: { command: 'retry', agent, inputs },
  };
  const event: NewEvent = { draft, at, tokens: options.countTokens(JSON.stringify(inputs)) };
  await store.append({ tenant, conversation }, [event]);
}

/** Leaves no work under a former id. Clears `took` too, in case the id becomes the present one again. */
async function settle(store: Store, old: ActorRecord, processed: number): Promise<void> {
  const { turn, timers, took } = old;
  const isDone = turn === null && timers.length === 0 && took === undefined;
  await store.update(old, {
    processed: Math.max(old.processed, processed),
    ...(!isDone && { state: { turn: null, timers: [], took: [] } }),
  });
}

/** Whether the present id has processed all events for a former id. Then the former record is settled too. */
async function isSettled(store: Store, before: ActorAddress, present: ActorAddress): Promise<boolean> {
  const record = await store.readActor(present);
  if (!record?.took?.includes(before.agent)) return false;
  const { processed } = record;
  const open = await store.addressed(before, { after: processed, upTo: Number.MAX_SAFE_INTEGER });
  const old = open.length === 0 ? await store.readActor(before) : null;
  if (old) await settle(store, old, processed);
  return open.length === 0;
}

/** Receipts stay under the id that wrote them. */
function receiptMethods({ store, names, options }: Renamed): Pick<Store, 'readReceipt'> {
  return {
    async readReceipt(tenant, turn, step) {
      const parts = parseTurnId(turn);
      const own = await store.readReceipt(tenant, turn, step);
      const before = own || !parts ? [] : names.before({ tenant, ...parts });
      for (const address of before) {
        const receipt = await store.readReceipt(tenant, turnId(address, parts?.number ?? 0), step);
        if (receipt) return withPresent(receipt);
      }
      return own && withPresent(own);
    },
  };

  function withPresent<R extends { agent: AgentId }>(receipt: R): R {
    return { ...receipt, agent: options.former.get(receipt.agent) ?? receipt.agent };
  }
}
