import type { IdRange } from './id-range.ts';
import type { FoundPassage, Passage, PassagesQuery } from './passages.ts';
import type {
  NewStanding,
  StandingCounts,
  StandingFilter,
  StandingPage,
  StandingsQuery,
} from './standings.ts';

/**
 * The lower half of the store port: adapters move plain rows, `create-store.ts` adds types and validation.
 * No vendor type crosses this file. Every method needs only single-record atomicity and unique keys, so that a document
 * database without transactions can implement it.
 *
 * Contract, proved by `testing/store-conformance.ts`:
 *  S1  `seq` of a conversation is dense from 1 and never reused, under any number of concurrent writers. Only a removed
 *      conversation begins again.
 *  S2  One row per (tenant, conversation, id). A second append of an id changes nothing and returns the first row.
 *  S3  An actor row changes only by `acquire` (raises the fence), `compareAndSet` and `step` (name the fence), and the two
 *      single-field writes `requestAbort` and `park`. It is removed only with its conversation.
 *  S4  `putOnce` writes an entry once; the first writer wins and every later one receives the winner's data.
 *  S5  A write whose promise has resolved survives the end of the process. `append`, `requestAbort`, `park`, the first
 *      write of an effect and a `step` with events, unless they are repeated, also survive a power loss, because the
 *      outside world depends on them. All other writes are ordered: a power loss keeps a prefix of them, which equals a crash a
 *      moment earlier.
 *      A rejected promise means "unknown": the caller must read again.
 *  S6  Text is preserved to the code unit: NUL, lone surrogates, '$', '.', '__proto__'.
 *  S7  The chain value of an appended row follows from that of the row with the seq before it, under any number of
 *      concurrent writers and after lost acknowledgements.
 *  S8  `step` is one write. If it is accepted, its entries are stored by then, and its events are appended once, in order, even
 *      if the process dies: at the latest before the next `acquire` of the actor resolves.
 *  S9  Somebody is told of the events of a step before the next `acquire` of the actor resolves, unless the process dies in
 *      a store that makes a step in one transaction.
 * Errors: `store_unavailable` (transient; disk full, connection lost), `store_corrupt`, `store_newer`,
 * `data_unwritable`.
 */
export interface EventRow {
  /** Id of the tenant. */
  tenant: string;
  /** Id of the conversation. */
  conversation: string;
  /** Place in the log, from 1. */
  seq: number;
  /** Its id. */
  id: string;
  /** Time, ms since the epoch. */
  at: number;
  /** Its kind. */
  kind: string;
  /** Ids of the agents that it addresses. */
  to: readonly string[];
  /** Hash of the payload; distinguishes a repeated append from a conflicting one, and a changed row from a stored one. */
  hash: string;
  /** Set by the driver, see `event-row.ts`. Null: written by a version without a chain. */
  chain: string | null;
  /** Words for searches. */
  tokens: number;
  /** Id of the turn. */
  turn: string | null;
  /** JSON text of the rest of the event. */
  data: string;
}
/** A row before it has its place. */
export type NewEventRow = Omit<EventRow, 'seq' | 'chain'>;

/** `duplicate`: the id was already stored; `hash` is that of the stored row. */
export type AppendOutcome =
  | { kind: 'appended'; seq: number }
  | { kind: 'duplicate'; seq: number; hash: string };

/** Names an actor. */
export interface ActorKey {
  /** Id of the tenant. */
  tenant: string;
  /** Id of the conversation. */
  conversation: string;
  /** Id of the agent. */
  agent: string;
}

/** What is stored of an actor. */
export interface ActorRow extends ActorKey {
  /** Grows with each owner. */
  fence: number;
  /** Id of the process that has it. Null: none. */
  owner: string;
  /** End of the lease, ms since the epoch. */
  until: number;
  /** Seq up to which its events are handled. */
  processed: number;
  /** Id of the pinned turn, or null. Copied from `data`, for filters. */
  turn: string | null;
  /** The requested abort. Null: none. */
  abort: string | null;
  /** Why it takes no turns. Null: it does. */
  parked: string | null;
  /** Whether events of an accepted step may still be missing in the log. Set by the driver. */
  outbox: boolean;
  /** When its first timer ends, ms; null without timers. Copied from `data`, for filters. */
  wakeAt: number | null;
  /** JSON text of the rest of the record. */
  data: string;
}

/** The columns that a write sets. */
export type ActorChange = Partial<
  Pick<ActorRow, 'owner' | 'until' | 'processed' | 'turn' | 'abort' | 'parked' | 'wakeAt' | 'data'>
>;

/** A write happens only if all of these hold. `notAborted`: the row's `abort` is not its `turn`. */
export interface ActorExpectation {
  /** The fence that the record must have. */
  fence: number;
  /** The turn that the record must be in. */
  turn?: string | null;
  /** The record must ask for no abort. */
  notAborted?: true;
  /** The lease must have ended before this time, ms, and the actor must not be parked. */
  freeAt?: number;
  /** How far the record must have processed its log. */
  processed?: number;
}

export type AcquireOutcome = { kind: 'acquired'; row: ActorRow } | { kind: 'busy'; until: number };

/** An event of a step. */
export interface StepEvent {
  /** For any log of the tenant. */
  row: NewEventRow;
  /** If another event has the id: this one takes its first spare id, or is dropped. */
  ifTaken: 'spare' | 'drop';
}

/** The change of an actor, with what counts only together with it. */
export interface ActorStep {
  /** Nothing is written unless all of these hold. */
  expect: ActorExpectation;
  /** Of the row. */
  change: ActorChange;
  /** Takes the lease: its fence rises by one. */
  takes?: true;
  /** Stored unless they are. */
  entries?: readonly { key: EntryKey; data: string; at: number }[];
  /** In order per log. */
  events?: readonly StepEvent[];
  /** Whoever takes up the turn appends the events again, so that they need not be kept for that. */
  isRepeated?: true;
  /** Called once the events are in their logs, in their order; see S9. */
  told?: (appended: readonly StepAppend[]) => Promise<void>;
  /**
   * Gives the lease back, with `processed` at the last of its own events or further, unless an event after `processed` addresses
   * the actor. Without a transaction, what comes at that moment is looked for again after the lease is given back.
   */
  rests?: true;
}

/** `there`: it was stored before. `taken`: another event has its id, and it was dropped. */
export type StepAppend = { kind: 'appended' | 'there'; seq: number; id: string } | { kind: 'taken' };

/** What a step has left. */
export interface StepOutcome {
  /** After the step. */
  row: ActorRow;
  /** With `rests`: an event after `processed` addresses the actor, and nobody may have looked at it. */
  isAddressed: boolean;
}

/** Namespaces of the entries beside the log. Only entries of `effect` and `note`, the key-value namespace, are swapped. */
export type Namespace =
  | 'journal'
  | 'effect'
  | 'artifact'
  | 'prompt'
  | 'body'
  | 'meta'
  | 'note'
  /** What can be computed again from a log. */
  | 'derived';
/** Names an entry. */
export interface EntryKey {
  /** Id of the tenant. */
  tenant: string;
  /** The namespace. */
  namespace: Namespace;
  /** The key within its namespace. */
  key: string;
}

/** Keys of one namespace of one tenant: `after` < key < `before`, at most `limit`. */
export interface KeyRange {
  /** Id of the tenant. */
  tenant: string;
  /** The namespace. */
  namespace: Namespace;
  /** Keys after this one. */
  after: string;
  /** Keys before this one. */
  before: string;
  /** Most keys. */
  limit: number;
}

/** A line of the list of conversations. */
export interface ConversationRow {
  /** Its id. */
  id: string;
  /** Last seq. */
  head: number;
  /** Time of the last event, ms. */
  at: number;
}

/** A position in the list of conversations: newest first, then by id, descending. */
export interface ConversationPlace {
  /** Time of the last event, ms since the epoch. */
  at: number;
  /** Its id. */
  id: string;
}

/** A page of the list of conversations. */
export interface ConversationsQuery {
  /** Id of the tenant. */
  tenant: string;
  /** Most rows. */
  limit: number;
  /** Only conversations that follow this position in the list. */
  before?: ConversationPlace;
  /** Only ids within one of these ranges; default all. */
  ranges?: readonly IdRange[];
}

/** May have fewer rows than `limit`, or none, after a long scan: only `next` marks the end. */
export interface ConversationPage {
  /** Newest first. */
  rows: ConversationRow[];
  /** Start of the next page; null at the end. */
  next: ConversationPlace | null;
  /** Scanned index entries; bounded for a tenant of any size. */
  looked: number;
}

/** What an adapter implements: S1 to S9. */
export interface StoreDriver {
  /** Appends rows of one conversation in order, each atomically; outcomes have the same order. */
  append(rows: readonly NewEventRow[]): Promise<AppendOutcome[]>;
  /**
   * Rows with after < seq <= upTo, oldest first, at most `limit`. With `maxBytes` the last row is the one whose `data`,
   * as UTF-8, brings the sum to that size; the texts of later rows are not read.
   */
  readEvents(query: {
    tenant: string;
    conversation: string;
    after: number;
    upTo?: number;
    limit: number;
    maxBytes?: number;
  }): Promise<EventRow[]>;
  /** One event. Null: none. */
  readEvent(query: { tenant: string; conversation: string; id: string }): Promise<EventRow | null>;
  /** Last seq; 0 for a conversation that does not exist. */
  head: (query: { tenant: string; conversation: string }) => Promise<number>;
  /** Seqs of events with `agent` in `to`, after < seq <= upTo, ascending. */
  addressed(query: ActorKey & { after: number; upTo: number }): Promise<number[]>;
  /** By an index, newest first. A conversation without writes meanwhile is in exactly one page. */
  conversations(query: ConversationsQuery): Promise<ConversationPage>;

  /** Takes the lease if it is free or has ended (`until` < now); creates a missing row. */
  acquire(
    key: ActorKey,
    lease: { owner: string; now: number; until: number },
    /** Called with what an earlier holder had committed, and perhaps not appended or not told of. */
    told?: (rows: readonly EventRow[]) => Promise<void>,
  ): Promise<AcquireOutcome>;
  /** Returns the row after the change, or null if an expectation did not hold. */
  compareAndSet(key: ActorKey, expect: ActorExpectation, change: ActorChange): Promise<ActorRow | null>;
  /** One write, or null if an expectation did not hold: see S8. */
  step(key: ActorKey, step: ActorStep): Promise<StepOutcome | null>;
  /** Sets `abort` if `turn` is the pinned turn; returns whether it was. */
  requestAbort: (key: ActorKey, turn: string) => Promise<boolean>;
  /**
   * Sets `parked` and creates a missing row; null makes the actor run again. With `expected`, changes nothing and
   * returns false unless the stored value equals it; a missing row counts as null.
   */
  park: (key: ActorKey, parked: string | null, expected?: string | null) => Promise<boolean>;
  /** One record. Null: none. */
  readActor(key: ActorKey): Promise<ActorRow | null>;
  /** The records of a conversation. */
  listActors(query: { tenant: string; conversation: string }): Promise<ActorRow[]>;
  /**
   * Actors that are not parked, have no live lease (`until` < now) and have work: unprocessed events addressed to them
   * since `since`, a pinned turn, an outbox, or a timer that has ended (`wakeAt` <= clock).
   */
  due(query: { now: number; clock: number; since: number; limit: number }): Promise<ActorKey[]>;

  /** Stores a value unless there is one. */
  putOnce(key: EntryKey, data: string, at: number): Promise<{ inserted: boolean; data: string }>;
  /** One value. Null: none. */
  readEntry(key: EntryKey): Promise<string | null>;
  /** Null for each missing entry; in the order of the keys. */
  readEntries(keys: readonly EntryKey[]): Promise<(string | null)[]>;
  /** Ascending by code units: `after` < key < `before`, at most `limit`. */
  entryKeys(range: KeyRange): Promise<string[]>;
  /** Deletes values. */
  removeEntries(keys: readonly EntryKey[]): Promise<void>;
  /** Replaces `from` by `to`; false if the entry has another value. */
  swap(key: EntryKey, from: string, to: string): Promise<boolean>;
  /** Removes entries of a namespace written before `before`; returns their number. Only these two have an index for it. */
  expire: (namespace: 'journal' | 'effect', before: number) => Promise<number>;

  /**
   * Replaces the data of stored rows, and nothing else of them, so that `hash` and `chain` stay those of what was appended. Rows
   * that are not there are passed over. For erasure alone.
   */
  replaceData: (
    log: { tenant: string; conversation: string },
    rows: readonly { id: string; data: string }[],
  ) => Promise<void>;
  /**
   * Makes what was removed and replaced unreadable in the files of the store, as far as it can. Returns what may still have it, a
   * sentence each.
   */
  scrub: () => Promise<string[]>;
  /** Removes a conversation in the order that `Store` promises; see `delete-conversation.ts`. */
  deleteConversation: (log: {
    tenant: string;
    conversation: string;
  }) => Promise<{ events: number; actors: number }>;

  /** A port of its own on the same logs. */
  readonly inbox: InboxDriver;

  /** Throws the error that keeps the store from working, if one is known. */
  check: () => Promise<void>;

  /** Closes it. */
  close: () => Promise<void>;
}

/** The order of the list: newest first, then by id, descending. */
export function byPlace(a: ConversationPlace, b: ConversationPlace): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}

/** The page after a position, for drivers that have all rows in memory. */
export function pageOf(
  rows: readonly ConversationRow[],
  { limit, before }: { limit: number; before?: ConversationPlace | undefined },
): ConversationPage {
  const behind = before ? rows.filter((row) => byPlace(before, row) < 0) : rows;
  const page = behind.toSorted(byPlace).slice(0, limit);
  return { rows: page, next: behind.length > limit ? placeOf(page.at(-1)) : null, looked: page.length };
}

/** The position of a row in the list; null without one. */
export function placeOf(row: ConversationRow | undefined): ConversationPlace | null {
  return row ? { at: row.at, id: row.id } : null;
}

/**
 * What only the inbox and the inspector store and read: where each conversation stands, see `standings.ts`, and the index of words,
 * see `passages.ts`. All of it follows from the logs, and no turn needs it. Proved by `testing/inbox-conformance.ts`.
 */
export interface InboxDriver {
  /** Stores where a conversation stands; changes nothing if that is known for a later seq. */
  saveStanding(log: { tenant: string; conversation: string }, standing: NewStanding): Promise<void>;
  /** Seq of the stored standing; 0: none. */
  standingSeq(log: { tenant: string; conversation: string }): Promise<number>;
  /** Removes the standing and the passages of a conversation: whoever stores standings makes them again. */
  forget(log: { tenant: string; conversation: string }): Promise<void>;
  /** One page. A conversation whose standing is not stored meanwhile is in exactly one page. */
  standings(query: StandingsQuery): Promise<StandingPage>;
  /** Counts the standings that pass the filter; `behind` only by tenant and ranges. */
  countStandings(filter: StandingFilter): Promise<StandingCounts>;
  /** Ids of conversations with events that their standing does not take into account, the newest first. */
  behind(query: { tenant: string; limit: number }): Promise<string[]>;
  /** Stores passages of a conversation. */
  savePassages(log: { tenant: string; conversation: string }, passages: readonly Passage[]): Promise<void>;
  /** The newest first, at most `limit`. */
  findPassages(query: PassagesQuery): Promise<FoundPassage[]>;
}
