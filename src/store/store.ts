import type {
  ActorAddress,
  ActorRecord,
  ConversationId,
  Event,
  EventDraft,
  EventKind,
  Unavailability,
  PromptReceipt,
  TenantId,
  TurnId,
} from '../events/index.ts';
import type { ConversationPlace, ConversationsQuery, StoreDriver, InboxDriver } from './driver.ts';
export type { EntryKey, KeyRange } from './driver.ts';

/**
 * The upper half of the store port, used by the rest of Troupe. `createStore` adds types and validation to a
 * `StoreDriver`; only the drivers know rows.
 */
export interface ConversationKey {
  /** Id of the tenant. */
  tenant: TenantId;
  /** Id of the conversation. */
  conversation: ConversationId;
}

export interface ConversationLine {
  /** Id of the conversation. */
  id: ConversationId;
  /** Last seq. */
  head: number;
  /** Time of the last event, ms. */
  at: number;
}

/** `appended`: the event as stored. `exists`: an event with the same id and payload was already stored. */
export type Appended = { kind: 'appended' | 'exists'; event: Event };

/** An event to be appended. */
export interface NewEvent {
  /** What is said. */
  draft: EventDraft;
  /** Time, ms since the epoch. */
  at: number;
  /** Its token count. */
  tokens: number;
}

export type Acquired = { kind: 'acquired'; record: ActorRecord } | { kind: 'busy'; until: number };

/** An actor whose record cannot be read, with the reason: it is damaged, or a newer version wrote it. */
export type UnreadableActor = { address: ActorAddress } & ({ corrupt: string } | { newer: string });

/** A change of an actor's record: what is given is written. */
export interface ActorPatch {
  /** Holder of the lease. */
  owner?: string;
  /** End of the lease, ms since the epoch. */
  until?: number;
  /** Seq up to which the actor has handled what addresses it. */
  processed?: number;
  /** Takes back the request to abort a turn. */
  abort?: null;
  /** Why the actor rests. Null: it works again. */
  parked?: Unavailability | null;
  /** Replaced as a whole, if the fence still holds. */
  state?: Partial<
    Pick<
      ActorRecord,
      | 'turnNo'
      | 'lastTurn'
      | 'snapshot'
      | 'machineVersion'
      | 'session'
      | 'cursor'
      | 'turn'
      | 'lost'
      | 'timers'
      | 'took'
    >
  >;
}

/** An event of a step, for any log of the tenant. */
export interface RecordEvent extends NewEvent {
  /** Id of its log. */
  conversation: ConversationId;
  /** `spare`: it gets another id. `drop`: it is left out. */
  ifTaken: 'spare' | 'drop';
}

/** A change of an actor's record with what counts only together with it. */
export interface RecordStep {
  /** The change of the record. */
  patch: ActorPatch;
  /**
   * `freeAt`: the lease is taken with this write, if nobody has had it since, it is free at this time (ms since the epoch) and the
   * actor is not parked.
   */
  expect?: { notAborted?: true; freeAt?: number };
  /** In order per log. */
  events: readonly RecordEvent[];
  /** What was sent to models. */
  receipts?: readonly { receipt: PromptReceipt; at: number }[];
  /** Whoever takes up the turn appends the events again. */
  isRepeated?: true;
  /** Gives the lease back, unless something addressed to the agent came meanwhile. */
  rests?: true;
  /** Called once the events are in their logs; see S9 of the driver. */
  told?: (events: StepEvents) => Promise<void>;
}

/** The events of a step as stored. */
export interface StepEvents {
  /** Those that the step has appended. */
  appended: readonly Event[];
  /** Those that were stored before. */
  there: readonly Event[];
  /** Kinds of those that were dropped, because another event has their id. */
  taken: readonly EventKind[];
}

/** What a step has left. */
export interface Stepped {
  /** The record as written. */
  record: ActorRecord;
  /** With `rests`: something addressed to the agent came that it has not handled. */
  isAddressed: boolean;
}

/** The ledger entry of a tool call. A `started` entry left by a crash is settled by the process that finds it. */
export type EffectRecord =
  | { status: 'started'; argsHash: string; by: string }
  | { status: 'settled'; argsHash: string; by: string; outcome: 'done' | 'failed' | 'lost'; data: string };

/** Maximum bytes of one page of a log. */
export const PAGE_BYTES = 4 * 1024 * 1024;

/** A part of a log that is small enough to read and fold in one turn of the event loop. */
export interface LogPage {
  /** Oldest first. */
  events: Event[];
  /** Whether the page reaches the end of the range; otherwise the next page begins after its last event. */
  isLast: boolean;
}

/**
 * A finding in a log.
 *  - `altered`: the content of the event does not match its hash.
 *  - `unreadable`: the row is no event.
 *  - `missing`: there is no event at this seq; `upTo` is the last one that is missing.
 *  - `unlinked`: the chain value does not follow from the event before it. The id, time, token count or hash of this event
 *    was changed, or another event was put before it.
 */
export type LogProblem =
  | { kind: 'altered' | 'unreadable' | 'unlinked'; seq: number; id: string; reason: string }
  | { kind: 'missing'; seq: number; upTo: number };

/** A part of a log, verified: at most `VERIFIED_EVENTS` of `verify-log.ts`. */
export interface LogVerification {
  /** Last seq of the conversation. */
  head: number;
  /** Number of events read. */
  events: number;
  /** Events whose words were erased: an erasure in the log names each. */
  erased: number;
  /** Events without a chain value: a version before the chain wrote them. */
  unchained: number;
  /** Seqs at which the chain begins: the first event with a chain value, and each one after events without. At most 100. */
  begins: number[];
  /** By seq, at most 100; `problemCount` has their number. */
  problems: LogProblem[];
  /** Number of problems, those not listed included. */
  problemCount: number;
  /** Chain value of the last event read: kept elsewhere, it proves later that nothing up to there was changed. */
  chain: string | null;
  /** Pass it as `after` to verify the next part; null at the end. */
  next: number | null;
}

/** The store as the engine uses it. */
export interface Store {
  /** Appends in order. Throws `event_conflict` if an id is stored with another payload; the other events are stored. */
  append(log: ConversationKey, events: readonly NewEvent[]): Promise<Appended[]>;
  /**
   * Oldest first. An unreadable record is returned as an `error` event with code `store_corrupt` at its seq, one that was
   * changed after its append with the mark `altered`. With
   * `maxBytes` the last event is the one that reaches that size, so only an empty answer or the head marks the end.
   */
  read(
    log: ConversationKey,
    range: { after: number; upTo?: number; limit?: number; maxBytes?: number },
  ): Promise<Event[]>;
  /**
   * The first page of a range, for readers of logs of any length. Every page but the last resolves in a new turn of the
   * event loop, so that other work runs in between; see `slices.ts`.
   */
  readPage(log: ConversationKey, range: { after: number; upTo?: number }): Promise<LogPage>;
  /** The event with this id. */
  readById(log: ConversationKey, id: string): Promise<Event | null>;
  /**
   * Identifies the log up to this event: the chain value, without one the event alone. Data derived from a log is good
   * as long as the log has the mark. Null if there is no event.
   */
  markOf(log: ConversationKey, seq: number): Promise<string | null>;
  /** Verifies the events after `after` (default 0): gaps, hashes, chain. */
  verify(log: ConversationKey, range?: { after?: number }): Promise<LogVerification>;
  /** Seq of the last event; 0 without events. */
  head(log: ConversationKey): Promise<number>;
  /** Seqs of the events that address an agent, ascending. */
  addressed(address: ActorAddress, range: { after: number; upTo: number }): Promise<number[]>;
  /** The newest conversations. */
  conversations(tenant: TenantId, limit: number): Promise<ConversationLine[]>;
  /** One page of all conversations, newest first; see the driver. */
  listConversations(
    tenant: TenantId,
    query: Omit<ConversationsQuery, 'tenant'>,
  ): Promise<{ conversations: ConversationLine[]; next: ConversationPlace | null }>;

  /** `told`: of the events of an earlier holder, see the driver. */
  acquire(
    address: ActorAddress,
    lease: { owner: string; now: number; until: number },
    told?: (events: readonly Event[]) => Promise<void>,
  ): Promise<Acquired>;
  /**
   * One fenced compare-and-set: writes `patch` over `base` if the stored fence is `base.fence`, the pinned turn is
   * still `base.turn` and, with `notAborted`, the turn is not cancelled. Null otherwise. Throws `actor_corrupt`.
   */
  update(base: ActorRecord, patch: ActorPatch, expect?: { notAborted?: true }): Promise<ActorRecord | null>;
  /** `update` with what counts only together with it; see `ActorStep` of the driver. Null as for `update`. */
  step(base: ActorRecord, step: RecordStep): Promise<Stepped | null>;
  /** Marks the pinned turn as cancelled. False: it is not pinned. */
  requestAbort(address: ActorAddress, turn: TurnId): Promise<boolean>;
  /** False if `expected` is given and differs from the stored value; see the driver. */
  park(
    address: ActorAddress,
    parked: Unavailability | null,
    expected?: Unavailability | null,
  ): Promise<boolean>;
  /** Throws `actor_corrupt` for a record that cannot be read. */
  readActor(address: ActorAddress): Promise<ActorRecord | null>;
  /** All actors of a conversation, also those whose records cannot be read. */
  listActors(log: ConversationKey): Promise<(ActorRecord | UnreadableActor)[]>;
  /**
   * Reserves a task for this process until `until`; false if another process has it. A claim is never released early:
   * its length is the interval of the task. Wrong clocks may run a task twice, which must do no harm.
   */
  claim(task: string, lease: { owner: string; now: number; until: number }): Promise<boolean>;
  /** Actors with work, see the driver. Leases are compared with `now`, timers with `clock`, the true time. */
  due(query: { now: number; clock: number; since: number; limit: number }): Promise<ActorAddress[]>;

  /** Insert-once journal of model steps. The returned data counts, whichever process wrote it. */
  journal(tenant: TenantId, key: string, data: string, at: number): Promise<string>;
  /** Removes entries written before `before`, ms; returns their number. */
  expire(namespace: 'journal' | 'effect', before: number): Promise<number>;
  /** The answer in the journal. */
  readJournal(tenant: TenantId, key: string): Promise<string | null>;
  /** `mine`: this caller inserted the effect and may execute it. `stored` is the argument for `settleEffect`. */
  startEffect(
    tenant: TenantId,
    id: string,
    start: { argsHash: string; by: string; at: number },
  ): Promise<{ mine: boolean; record: EffectRecord; stored: string }>;
  /** Settles a started effect once, if it is unchanged since `stored`; returns the record stored afterwards. */
  settleEffect(
    tenant: TenantId,
    id: string,
    stored: string,
    end: { outcome: 'done' | 'failed' | 'lost'; data: string },
  ): Promise<EffectRecord>;

  /** Keeps the whole output of a tool, which prompts cut. Written once. */
  putArtifact(log: ConversationKey, id: string, content: string, at: number): Promise<void>;
  /** The whole output of a tool. */
  readArtifact(log: ConversationKey, id: string): Promise<string | null>;
  /**
   * Data that can be computed again from the log, and so may be missing at any time. Written once; a new version gets
   * a new key. Keys are ASCII without '/' at their beginning. Removed with the conversation.
   */
  putDerived(log: ConversationKey, key: string, text: string, at: number): Promise<void>;
  /** Null for each missing entry; in the order of the keys. */
  readDerived(log: ConversationKey, keys: readonly string[]): Promise<(string | null)[]>;
  /** Keys that begin with `prefix`, ascending. */
  derivedKeys(log: ConversationKey, prefix: string): Promise<string[]>;
  /** Removes entries of derived data. */
  removeDerived(log: ConversationKey, keys: readonly string[]): Promise<void>;
  /** Keeps what was sent to a model at a step of a turn. Written once. */
  putReceipt(tenant: TenantId, receipt: PromptReceipt, at: number): Promise<void>;
  /** What was sent to a model at this step. */
  readReceipt(tenant: TenantId, turn: TurnId, step: number): Promise<PromptReceipt | null>;
  /** Content-addressed text, stored once. */
  putBody(tenant: TenantId, hash: string, text: string, at: number): Promise<void>;
  /** The text with this hash. */
  readBody(tenant: TenantId, hash: string): Promise<string | null>;
  /** A value of the tenant's key-value namespace, for small, changing facts that nothing depends on. */
  get(tenant: TenantId, key: string): Promise<string | null>;
  /**
   * Writes `to` if the key is absent or its value is `from`. Returns the value stored afterwards: `to`, or that of
   * another writer.
   */
  compareAndSet(tenant: TenantId, key: string, from: string | null, to: string): Promise<string>;
  /**
   * Removes a conversation: its events, its actors, and the entries of their turns. Bodies and key-values stay, because
   * other conversations may share them. Safe to repeat; returns the number of removed events and actors.
   *
   * Order: the addresses of its events, its actors, their entries, its events from the newest. So an interrupted removal
   * wakes no agent and runs no turn again without its journal, and `head` finds the conversation until a repetition has
   * nothing left to remove.
   *
   * Afterwards seqs, fences and turn numbers begin again, so the caller first stops all work in the conversation. Events
   * written meanwhile are removed as well, or begin a new conversation.
   */
  deleteConversation(log: ConversationKey): Promise<{ events: number; actors: number }>;
  /**
   * Replaces stored events by what an erasure leaves of them; each names the erasure. Returns the hash of each, in order: that of
   * `ErasureBody`. For erasure alone, as the two that follow.
   */
  replaceEvents(log: ConversationKey, events: readonly Event[]): Promise<string[]>;
  /** What is stored beside the logs. */
  readonly entries: Pick<StoreDriver, 'entryKeys' | 'readEntries' | 'removeEntries' | 'putOnce' | 'swap'>;
  /** See the driver. */
  scrub(): Promise<string[]>;
  /** Insert-once facts of this store, for example its secret; returns the stored value. */
  meta(key: string, value: string): Promise<string>;

  /** For the inbox and the inspector alone. */
  readonly inbox: InboxDriver;

  /** Throws the error that keeps the store from working, if there is one. */
  check(): Promise<void>;

  /** Waits for what has begun, and lets go of the database. */
  close(): Promise<void>;
}
