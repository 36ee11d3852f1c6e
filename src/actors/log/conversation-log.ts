import type { Clock } from '../../base/clock.ts';
import { toTroupeError, TroupeError } from '../../base/errors.ts';
import { eventText } from '../../context/index.ts';
import {
  type ActorAddress,
  type Event,
  type EventDraft,
  isRuntimeId,
  type TenantId,
  type EventId,
  type EventKind,
  isImported,
  spareId,
} from '../../events/index.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Router } from '../../queue/router.ts';
import type {
  Appended,
  ConversationKey,
  NewEvent,
  RecordEvent,
  StepEvents,
  Store,
} from '../../store/store.ts';
import { createLogPages, createRecentEvents, createRemoteEvents } from './recent-events.ts';
import type { PageSource } from './read-log.ts';
import type { Redaction } from '../../events/redaction.ts';
import { slicesOf } from '../../base/slices.ts';

/**
 * The only way into the log: redacts, counts tokens, appends, notifies listeners, and wakes the addressed agents, in this
 * order. An agent that was woken before its event is stored would find nothing, and the wake would be lost.
 */
export interface ConversationLog {
  /** Appends in order and wakes the addressed agents. Safe to repeat with the same drafts. */
  append(log: ConversationKey, drafts: readonly EventDraft[], options?: AppendOptions): Promise<Appended[]>;
  /**
   * Appends events with a step of an actor. `write` makes the step, with the prepared events and the function to call once they
   * are stored. Null: the step was not accepted, and nothing was appended.
   */
  step<T>(
    tenant: TenantId,
    outgoing: readonly StepDraft[],
    write: (events: RecordEvent[], told: (events: StepEvents) => Promise<void>) => Promise<T | null>,
  ): Promise<T | null>;
  /** Announces stored events of a former lease holder, which may have died before it announced them. */
  readonly published: (events: readonly Event[]) => Promise<void>;
  /** Events, oldest first, at most `limit`. The newest events come from memory, without reading the store. */
  read(
    log: ConversationKey,
    range: { after: number; upTo?: number; limit: number },
  ): Promise<readonly Event[]>;
  /** Like the store's `readPage`, for callers that fold the whole log. */
  readPage(
    log: ConversationKey,
    range: { after: number; upTo?: number },
  ): Promise<{ events: readonly Event[]; isLast: boolean }>;
  /** The pages of the store, for folds that must include events of other processes. */
  stored: PageSource;
  readById(log: ConversationKey, id: string): Promise<Event | null>;
  onAppended(listener: AppendListener): () => void;
  /** Calls `listener` for every agent that an event of this process addresses, before its wake: its turn may have to end first. */
  onAddressed(listener: AddressListener): () => void;
  /** Drops the recent events of conversations without events since `before`, ms since the epoch. */
  trim(before: number): void;
  /** Drops the recent events of a deleted conversation. */
  forget(log: ConversationKey): void;
  /** Ends the subscription to other processes. */
  close(): void;
}

/** A text with more characters takes milliseconds to count and write, so other work may run before it. */
const LONG_TEXT = 8_192;

export type AppendListener = (tenant: TenantId, event: Event) => void;

type AddressListener = (address: ActorAddress, event: Event) => Promise<void>;

interface AppendOptions {
  /** Time of each event, ms. Default: now. */
  at?: (index: number) => number;
  /** Whether addressed agents are woken. Default: true. */
  wake?: boolean;
  /** Whether an event of the runtime takes a spare id if its own is taken. Default: true. Copies must keep their ids. */
  spares?: boolean;
}

export type StepDraft = Pick<RecordEvent, 'conversation' | 'draft' | 'ifTaken'>;

interface LogDeps {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  clock: Clock;
  countTokens: (text: string) => number;
  metrics: Metrics;
  redaction?: Redaction | undefined;
  onWarning: (error: unknown, where: string) => void;
}

export function createConversationLog(deps: LogDeps): ConversationLog {
  const { store, broadcast, clock, metrics } = deps;
  const listeners = new Set<AppendListener>();
  const addressed = new Set<AddressListener>();
  const appendUnderSpare = createSpareAppend(deps);
  const wakeAddressed = createWaking(deps, addressed);
  const { tell, wakeAll, announce } = createTelling(deps, wakeAddressed);
  const { recent, remote, note, unsubscribe } = createNoting(deps, listeners);

  async function appendNow(
    log: ConversationKey,
    entries: readonly NewEvent[],
    spares: boolean,
  ): Promise<Appended[]> {
    let appended: Appended[];
    try {
      appended = await store.append(log, entries);
    } catch (error) {
      if (!spares) throw error;
      appended = await appendUnderSpare(error, log, entries);
    }
    note(freshIn(appended));
    return appended;
  }

  async function told({ appended, there, taken }: StepEvents): Promise<void> {
    note(appended);
    await tell(appended);
    if (there.length > 0) await wakeAll(there);
    for (const kind of taken) metrics.count('posts_too_late', { kind });
  }

  return {
    async append(log, drafts, { at, wake = true, spares = true } = {}) {
      const made = entriesOf(deps, drafts, at);
      const entries = Array.isArray(made) ? made : await made;
      const appended = broadcast.isAlone?.()
        ? await appendNow(log, entries, spares)
        : await remote.during(log, () => appendNow(log, entries, spares));
      announce(log, freshIn(appended));
      for (const { event } of appended) if (wake && event.to.length > 0) await wakeAddressed(log, event);
      return appended;
    },
    async step(tenant, outgoing, write) {
      const drafts: EventDraft[] = [];
      for (const { draft } of outgoing) drafts.push(draft);
      const made = entriesOf(deps, drafts);
      const entries = Array.isArray(made) ? made : await made;
      const events: RecordEvent[] = [];
      for (const [index, entry] of entries.entries()) events.push({ ...outgoing[index]!, ...entry });
      if (broadcast.isAlone?.()) return write(events, told);
      const conversations = new Set(outgoing.map(({ conversation }) => conversation));
      const logs = [...conversations].map((conversation) => ({ tenant, conversation }));
      return duringAll(remote, logs, () => write(events, told));
    },
    published: tell,
    async read(log, range) {
      const known = range.upTo === undefined ? recent.after(log, range.after) : null;
      // An empty result proves nothing, because memory lacks events of other processes and appends whose answer was lost.
      if (known === null || known.length === 0) return store.read(log, range);
      return known.length > range.limit ? known.slice(0, range.limit) : known;
    },
    readById: (log, id) => store.readById(log, id),
    ...createLogPages(store, recent, clock),
    onAppended(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onAddressed(listener) {
      addressed.add(listener);
      return () => addressed.delete(listener);
    },
    close: unsubscribe,
  };
}

function createNoting(
  { store, broadcast, clock, onWarning }: LogDeps,
  listeners: ReadonlySet<AppendListener>,
) {
  const recent = createRecentEvents();
  const remote = createRemoteEvents({ store, notify, isWatched: () => listeners.size > 0, onWarning });
  const unsubscribe = broadcast.subscribe((notice) => {
    if (notice.type === 'appended') void remote.hear(notice);
  });

  function notify(log: ConversationKey, event: Event): void {
    for (const listener of listeners) {
      try {
        listener(log.tenant, event);
      } catch (error) {
        onWarning(error, 'append listener');
      }
    }
  }

  /** Records appended events. A process that is alone gets no notices, so it need not record which events are its own. */
  function note(events: readonly Event[]): void {
    const isAlone = broadcast.isAlone?.() ?? false;
    const now = clock.now();
    for (const event of events) {
      recent.add(event, event, now);
      if (!isAlone) remote.own(event, event);
      notify(event, event);
    }
  }

  return { recent, remote, note, unsubscribe };
}

type Wake = ReturnType<typeof createWaking>;

function createTelling({ metrics, broadcast }: LogDeps, wakeAddressed: Wake) {
  function announce({ tenant, conversation }: ConversationKey, events: readonly Event[]): void {
    const [first] = events;
    const last = events.at(-1);
    if (!first || !last) return;
    metrics.count('events_appended', { tenant }, events.length);
    if (broadcast.isAlone?.()) return;
    broadcast.publish({ type: 'appended', tenant, conversation, after: first.seq - 1, head: last.seq });
  }

  /** Announces all conversations before the first wake, because an append during a wait would be announced before the rest. */
  async function tell(events: readonly Event[]): Promise<void> {
    const [first] = events;
    let isOne = true;
    for (const event of events) isOne &&= event.conversation === first?.conversation;
    if (first && isOne) announce(first, events);
    else
      for (const own of Map.groupBy(events, ({ conversation }) => conversation).values())
        announce(own[0]!, own);
    for (const event of events) if (event.to.length > 0) await wakeAddressed(event, event);
  }

  async function wakeAll(events: readonly Event[]): Promise<void> {
    for (const event of events) if (event.to.length > 0) await wakeAddressed(event, event);
  }

  return { announce, tell, wakeAll };
}

/** Runs `write`. Notices of other processes about these conversations wait until it ends. */
function duringAll<T>(
  remote: ReturnType<typeof createRemoteEvents>,
  logs: readonly ConversationKey[],
  write: () => Promise<T>,
): Promise<T> {
  const [log, ...rest] = logs;
  return log
    ? remote.during(log, () => (rest.length > 0 ? duringAll(remote, rest, write) : write()))
    : write();
}

function freshIn(appended: readonly Appended[]): Event[] {
  const fresh: Event[] = [];
  for (const { kind, event } of appended) if (kind === 'appended') fresh.push(event);
  return fresh;
}

type At = AppendOptions['at'];

/** Redacts the drafts and counts their tokens. Returns a promise only if they are long. */
function entriesOf(deps: LogDeps, drafts: readonly EventDraft[], at?: At): NewEvent[] | Promise<NewEvent[]> {
  const { clock, countTokens, redaction } = deps;
  const entries: NewEvent[] = [];
  let chars = 0;
  for (const [index, given] of drafts.entries()) {
    const words = eventText(given);
    chars += words.length;
    if (chars > LONG_TEXT) return entriesInTurns(deps, drafts, at);
    const draft = redaction?.draft(given) ?? given;
    const text = draft === given ? words : eventText(draft);
    entries.push({ draft, at: at ? at(index) : clock.now(), tokens: text === '' ? 0 : countTokens(text) });
  }
  return entries;
}

/** Like `entriesOf`, but lets other work run before each long text and at the end. */
async function entriesInTurns(
  { clock, countTokens, redaction }: LogDeps,
  drafts: readonly EventDraft[],
  at?: At,
): Promise<NewEvent[]> {
  const entries: NewEvent[] = [];
  for (const [index, given] of drafts.entries()) {
    if (eventText(given).length > LONG_TEXT) await slicesOf(clock).next();
    const draft = redaction?.draft(given) ?? given;
    entries.push({ draft, at: at ? at(index) : clock.now(), tokens: countTokens(eventText(draft)) });
  }
  await slicesOf(clock).next();
  return entries;
}

/**
 * Appends under a spare id if an id of the runtime is taken by an event that is not the runtime's. Such an event was written
 * elsewhere, because clients cannot choose ids of the runtime.
 */
function createSpareAppend({ store, onWarning }: LogDeps) {
  return async function appendUnderSpare(
    error: unknown,
    log: ConversationKey,
    entries: readonly NewEvent[],
  ): Promise<Appended[]> {
    const id = error instanceof TroupeError && error.code === 'event_conflict' && error.data['id'];
    const taken = entries.findIndex(({ draft }) => draft.id === id && isRuntimeId(draft.id));
    const entry = entries[taken];
    if (!entry) throw error;
    const place = await ownPlace(store, log, entry.draft);
    if (place.id === id) throw error;
    onWarning(`${id} is not the runtime's: its event is ${place.id}`, `log of ${log.conversation}`);
    const spared = entries.with(taken, { ...entry, draft: { ...entry.draft, id: place.id } });
    return store.append(log, spared).catch((again: unknown) => appendUnderSpare(again, log, spared));
  };
}

function createWaking({ router, metrics, onWarning }: LogDeps, addressed: ReadonlySet<AddressListener>) {
  return async function wakeAddressed(log: ConversationKey, event: Event): Promise<void> {
    for (const agent of event.to) {
      const address: ActorAddress = { tenant: log.tenant, conversation: log.conversation, agent };
      for (const listener of addressed) {
        await listener(address, event).catch((error: unknown) => onWarning(error, 'address listener'));
      }
      // The sweeper makes up for a wake that is lost here.
      await router.wake(address).catch((error: unknown) => {
        const { code } = toTroupeError(error);
        metrics.count('queue_errors', { code });
        // The connection already warns when it is lost, so a warning for every event would add nothing.
        if (code !== 'queue_unavailable') onWarning(error, 'wake');
      });
    }
  };
}

const MOST_SPARES = 100;

/** Kinds that share one id, so that the first write decides how a turn ends. */
const ENDS_OF_TURNS: readonly EventKind[] = ['turn.done', 'turn.failed', 'turn.aborted'];

type Draft = Pick<EventDraft, 'id' | 'kind' | 'turn' | 'author'>;

/**
 * Whether the runtime itself may have written `there` under the id of this draft, perhaps with other text. Imported events may
 * have any id and were never written by this runtime.
 */
export function isOurs(there: Event, { kind, turn, author }: Omit<Draft, 'id'>): boolean {
  if (isImported(there) || there.turn !== turn) return false;
  if (kind === 'message')
    return there.kind === kind && there.author.kind === author.kind && there.author.id === author.id;
  return there.kind === kind || (ENDS_OF_TURNS.includes(kind) && ENDS_OF_TURNS.includes(there.kind));
}

/**
 * The id of an event of the runtime, whether it is written yet or not: its own id, or its first spare id that no other event
 * has. Every process finds the same id, so repeated or concurrent work writes the event once. Throws `event_conflict`.
 */
async function ownPlace<D extends Draft>(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: D,
): Promise<{ id: EventId; there: Event | null }> {
  for (let number = 1; number <= MOST_SPARES; number += 1) {
    const id = number === 1 ? draft.id : spareId(draft.id, number);
    const there = await store.readById(log, id);
    if (!there || isOurs(there, draft)) return { id, there };
  }
  const message = `${MOST_SPARES} spare ids of ${draft.id} are taken in ${log.conversation}`;
  throw new TroupeError('event_conflict', message, { id: draft.id, conversation: log.conversation });
}

/** The runtime's own event for this draft, under its id or a spare one. Null if it is not written yet. */
export async function readOwn(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: Draft,
): Promise<Event | null> {
  return (await ownPlace(store, log, draft)).there;
}
