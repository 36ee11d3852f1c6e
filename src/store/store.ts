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
 * The upper half of the store port, which the rest of Troupe uses. `createStore` adds types and validation to a
 * `StoreDriver`, so that only drivers know rows.
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
  /** Time of the last event, ms since the epoch. */
  at: number;
}

/** `appended`: the event as stored. `exists`: an event with the same id and payload was already stored. */
export type Appended = { kind: 'appended' | 'exists'; event: Event };

/** An event to be appended. */
export interface NewEvent {
  /** The event without seq, time and token count. */
  draft: EventDraft;
  /** Time, ms since the epoch. */
  at: number;
  /** Token count of the event. */
  tokens: number;
}

export type Acquired = { kind: 'acquired'; record: ActorRecord } | { kind: 'busy'; until: number };

/** An actor whose record cannot be read, with the reason. `corrupt`: it is damaged. `newer`: a newer version wrote it. */
export type UnreadableActor = { address: ActorAddress } & ({ corrupt: string } | { newer: string });

/** A change of an actor's record. Absent fields stay unchanged. */
export interface ActorPatch {
  /** Id of the process that holds the lease; '' releases it. */
  owner?: string;
  /** End of the lease, ms since the epoch. */
  until?: number;
  /** Seq up to which the actor has processed its log. */
  processed?: number;
  /** Withdraws the request to abort a turn. */
  abort?: null;
  /** Why the actor takes no turns. Null: it takes turns again. */
  parked?: Unavailability | null;
  /** Fields of the record's state. Absent ones keep the value of the base record. */
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
  /** If another event has the id: `spare` appends it under a spare id, `drop` leaves it out. */
  ifTaken: 'spare' | 'drop';
}

/** One write: a change of an actor's record, with the events and receipts that are stored only together with it. */
export interface RecordStep {
  /** The change of the record. */
  patch: ActorPatch;
  /**
   * `freeAt`: this write also takes the lease. It requires that the lease is free at this time (ms since the epoch), that nobody
   * has taken it since the record was read, and that the actor is not parked. `notAborted`: no abort of the turn is requested.
   */
  expect?: { notAborted?: true; freeAt?: number };
  /** Events to append, in order per log. */
  events: readonly RecordEvent[];
  /** Receipts of what was sent to models, with their times in ms since the epoch. */
  receipts?: readonly { receipt: PromptReceipt; at: number }[];
  /** A process that resumes the turn appends these events again, so the store need not keep them for a crash. */
  isRepeated?: true;
  /** Releases the lease; see `rests` of the driver. */
  rests?: true;
  /** Called once the events are in their logs; see S9 of the driver. */
  told?: (events: StepEvents) => Promise<void>;
}

/** The events of a step as stored. */
export interface StepEvents {
  /** Events that the step appended. */
  appended: readonly Event[];
  /** Events that were already stored. */
  there: readonly Event[];
  /** Kinds of the events that were dropped, because another event has their id. */
  taken: readonly EventKind[];
}

/** The result of an accepted step. */
export interface Stepped {
  /** The record as written. */
  record: ActorRecord;
  /** With `rests`: an unprocessed event addresses the agent. */
  isAddressed: boolean;
}

/** The ledger entry of a tool call. After a crash, the process that finds a `started` entry settles it. */
export type EffectRecord =
  | { status: 'started'; argsHash: string; by: string }
  | { status: 'settled'; argsHash: string; by: string; outcome: 'done' | 'failed' | 'lost'; data: string };

export const PAGE_BYTES = 4 * 1024 * 1024;

/** A part of a log, small enough to be read and folded in one turn of the event loop. */
export interface LogPage {
  /** Oldest first. */
  events: Event[];
  /** Whether the page reaches the end of the range. If not, the next page begins after its last event. */
  isLast: boolean;
}

/**
 * A finding in a log.
 *  - `altered`: the content of the event does not match its hash.
 *  - `unreadable`: the row is no event.
 *  - `missing`: there is no event at this seq; `upTo` is the last one that is missing.
 *  - `unlinked`: the chain value does not follow from the event before it: the id, time, token count or hash of this event
 *    was changed, or the event before it was replaced.
 */
export type LogProblem =
  | { kind: 'altered' | 'unreadable' | 'unlinked'; seq: number; id: string; reason: string }
  | { kind: 'missing'; seq: number; upTo: number };

/** Result of verifying a part of a log, at most `VERIFIED_EVENTS` events (`verify-log.ts`). */
export interface LogVerification {
  /** Last seq of the conversation. */
  head: number;
  /** Number of events read. */
  events: number;
  /** Number of events whose words were erased. An erasure in the log names each of them. */
  erased: number;
  /** Number of events without a chain value, which an earlier version wrote. */
  unchained: number;
  /** Seqs at which the chain begins: events with a chain value whose predecessor has none. At most 100. */
  begins: number[];
  /** Problems by seq, at most 100. */
  problems: LogProblem[];
  /** Number of all problems, also of those not in `problems`. */
  problemCount: number;
  /** Chain value of the last event read. A copy kept elsewhere can later prove that no event up to there was changed. */
  chain: string | null;
  /** Value of `after` for the next part; null at the end. */
  next: number | null;
}

/** The store as the engine uses it. */
export interface Store {
  /** Appends in order. Throws `event_conflict` if an id is stored with another payload; the other events are still stored. */
  append(log: ConversationKey, events: readonly NewEvent[]): Promise<Appended[]>;
  /**
   * Oldest first. An unreadable row is returned as an `error` event with code `store_corrupt` at its seq, a row that was
   * changed after its append with `altered`. With `maxBytes` the last event is the one that reaches that size, so fewer events
   * than `limit` do not mean the end: only an empty answer or the head does.
   */
  read(
    log: ConversationKey,
    range: { after: number; upTo?: number; limit?: number; maxBytes?: number },
  ): Promise<Event[]>;
  /**
   * The first page of a range, for readers of logs of any length. Every page but the last resolves in a new turn of the
   * event loop, so that other work can run in between; see `slices.ts`.
   */
  readPage(log: ConversationKey, range: { after: number; upTo?: number }): Promise<LogPage>;
  /** The event with this id; null if there is none. */
  readById(log: ConversationKey, id: string): Promise<Event | null>;
  /**
   * A text that identifies the log up to this event: its chain value, or without one the event alone. Data derived from the log
   * up to here is valid as long as this text is the same. Null if there is no event.
   */
  markOf(log: ConversationKey, seq: number): Promise<string | null>;
  /** Verifies the events after `after` (default 0): gaps, hashes, chain. */
  verify(log: ConversationKey, range?: { after?: number }): Promise<LogVerification>;
  /** Seq of the last event; 0 without events. */
  head(log: ConversationKey): Promise<number>;
  /** Seqs of the events that address an agent, ascending. */
  addressed(address: ActorAddress, range: { after: number; upTo: number }): Promise<number[]>;
  /** The newest conversations, at most `limit`. */
  conversations(tenant: TenantId, limit: number): Promise<ConversationLine[]>;
  /** One page of all conversations, newest first; see the driver. */
  listConversations(
    tenant: TenantId,
    query: Omit<ConversationsQuery, 'tenant'>,
  ): Promise<{ conversations: ConversationLine[]; next: ConversationPlace | null }>;

  /** Takes the lease of an actor. `told`: called with the events of an earlier holder; see the driver. */
  acquire(
    address: ActorAddress,
    lease: { owner: string; now: number; until: number },
    told?: (events: readonly Event[]) => Promise<void>,
  ): Promise<Acquired>;
  /**
   * One fenced compare-and-set: writes `patch` over `base` if the stored fence is `base.fence`, the pinned turn is
   * still `base.turn` and, with `notAborted`, no abort of the turn is requested. Null otherwise. Throws `actor_corrupt`.
   */
  update(base: ActorRecord, patch: ActorPatch, expect?: { notAborted?: true }): Promise<ActorRecord | null>;
  /** Like `update`, with events and receipts in the same write; see `ActorStep` of the driver. Null as for `update`. */
  step(base: ActorRecord, step: RecordStep): Promise<Stepped | null>;
  /** Requests that the pinned turn is aborted. Returns false if `turn` is not pinned. */
  requestAbort(address: ActorAddress, turn: TurnId): Promise<boolean>;
  /** Sets or clears `parked`. Returns false if `expected` is given and differs from the stored value; see the driver. */
  park(
    address: ActorAddress,
    parked: Unavailability | null,
    expected?: Unavailability | null,
  ): Promise<boolean>;
  /** The record of an actor; null if there is none. Throws `actor_corrupt` if it cannot be read. */
  readActor(address: ActorAddress): Promise<ActorRecord | null>;
  /** All actors of a conversation, including those whose records cannot be read. */
  listActors(log: ConversationKey): Promise<(ActorRecord | UnreadableActor)[]>;
  /**
   * Reserves a task for this process until `until`. Returns false if another process has reserved it. A claim is never released
   * early: its length is the interval of the task. With wrong clocks a task may run twice, which must do no harm.
   */
  claim(task: string, lease: { owner: string; now: number; until: number }): Promise<boolean>;
  /** Actors with work; see the driver. Leases are compared with `now`, timers with `clock`, the real time. */
  due(query: { now: number; clock: number; since: number; limit: number }): Promise<ActorAddress[]>;

  /** Adds to the journal of model steps if the key is absent. Returns the stored data, which another process may have written. */
  journal(tenant: TenantId, key: string, data: string, at: number): Promise<string>;
  /** Removes entries written before `before`, ms since the epoch. Returns their number. */
  expire(namespace: 'journal' | 'effect', before: number): Promise<number>;
  /** The data in the journal; null if there is none. */
  readJournal(tenant: TenantId, key: string): Promise<string | null>;
  /** Records that a tool call starts. `mine`: this caller may run it. `stored`: argument for `settleEffect`. */
  startEffect(
    tenant: TenantId,
    id: string,
    start: { argsHash: string; by: string; at: number },
  ): Promise<{ mine: boolean; record: EffectRecord; stored: string }>;
  /** Settles a started effect, if it is unchanged since `stored`. Returns the record stored afterwards. */
  settleEffect(
    tenant: TenantId,
    id: string,
    stored: string,
    end: { outcome: 'done' | 'failed' | 'lost'; data: string },
  ): Promise<EffectRecord>;

  /** Stores the whole output of a tool, of which prompts show a part. Written once. */
  putArtifact(log: ConversationKey, id: string, content: string, at: number): Promise<void>;
  /** The whole output of a tool; null if there is none. */
  readArtifact(log: ConversationKey, id: string): Promise<string | null>;
  /**
   * Stores data that can be computed again from the log, and so may be missing at any time. Written once: a new version gets
   * a new key. Keys are ASCII and do not begin with '/'. Removed with the conversation.
   */
  putDerived(log: ConversationKey, key: string, text: string, at: number): Promise<void>;
  /** The entries in the order of the keys; null for each missing one. */
  readDerived(log: ConversationKey, keys: readonly string[]): Promise<(string | null)[]>;
  /** Keys that begin with `prefix`, ascending. */
  derivedKeys(log: ConversationKey, prefix: string): Promise<string[]>;
  /** Removes entries of derived data. */
  removeDerived(log: ConversationKey, keys: readonly string[]): Promise<void>;
  /** Stores what was sent to a model at a step of a turn. Written once. */
  putReceipt(tenant: TenantId, receipt: PromptReceipt, at: number): Promise<void>;
  /** What was sent to a model at this step; null if unknown. */
  readReceipt(tenant: TenantId, turn: TurnId, step: number): Promise<PromptReceipt | null>;
  /** Stores a text under its hash, once. */
  putBody(tenant: TenantId, hash: string, text: string, at: number): Promise<void>;
  /** The text with this hash; null if there is none. */
  readBody(tenant: TenantId, hash: string): Promise<string | null>;
  /** A value of the tenant's key-value namespace, for small, changing facts on whose durability nothing depends. */
  get(tenant: TenantId, key: string): Promise<string | null>;
  /**
   * Writes `to` if the key is absent or its value is `from`. Returns the value stored afterwards: `to`, or that of
   * another writer.
   */
  compareAndSet(tenant: TenantId, key: string, from: string | null, to: string): Promise<string>;
  /**
   * Removes a conversation: its events, its actors, and the entries of their turns. Bodies and key-values stay, because
   * other conversations may share them. Safe to repeat. Returns the number of removed events and actors.
   *
   * The order is: addressees of its events, actors, their entries, events from the newest. So an interrupted removal wakes no
   * agent and runs no turn again without its journal, and `head` reports the conversation until nothing is left to remove.
   *
   * Afterwards seqs, fences and turn numbers begin again, so the caller first stops all work in the conversation. Events
   * written meanwhile are removed too, or begin a new conversation.
   */
  deleteConversation(log: ConversationKey): Promise<{ events: number; actors: number }>;
  /**
   * Replaces stored events by their erased form, which names the erasure. Returns the hash of each, in order, as in
   * `ErasureBody`. Only erasure may call it.
   */
  replaceEvents(log: ConversationKey, events: readonly Event[]): Promise<string[]>;
  /** Entries beside the logs. Only erasure may use them. */
  readonly entries: Pick<StoreDriver, 'entryKeys' | 'readEntries' | 'removeEntries' | 'putOnce' | 'swap'>;
  /** See `scrub` of the driver. */
  scrub(): Promise<string[]>;
  /** Stores a fact about this store, for example its secret, if the key is absent. Returns the stored value. */
  meta(key: string, value: string): Promise<string>;

  /** Standings and the index of words, for the inbox and the inspector only. */
  readonly inbox: InboxDriver;

  /** Throws the error that keeps the store from working, if there is one. */
  check(): Promise<void>;

  /** Waits for running calls, then closes the database. */
  close(): Promise<void>;
}
