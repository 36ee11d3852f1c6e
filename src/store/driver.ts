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
 *  S3  An actor row changes only by `acquire` (raises the fence), `compareAndSet` and `step` (require the fence), and the two
 *      single-field writes `requestAbort` and `park`. It is removed only with its conversation.
 *  S4  `putOnce` writes an entry once; the first writer wins and every later one receives the winner's data.
 *  S5  A write whose promise has resolved survives the end of the process. `append`, `requestAbort`, `park`, the first
 *      write of an effect and a `step` with events (unless `isRepeated`) also survive a power loss, because the outside
 *      world depends on them. All other writes are ordered: a power loss keeps a prefix of them, as if the process had
 *      crashed a moment earlier. A rejected promise means "unknown": the caller must read again.
 *  S6  Text is preserved to the code unit: NUL, lone surrogates, '$', '.', '__proto__'.
 *  S7  The chain value of an appended row follows from that of the row with the seq before it, under any number of
 *      concurrent writers and after lost acknowledgements.
 *  S8  `step` is one write. If it is accepted, its entries are stored by then, and its events are appended once, in order, even
 *      if the process dies: at the latest before the next `acquire` of the actor resolves.
 *  S9  `told` is called for the events of a step before the next `acquire` of the actor resolves. Exception: the process
 *      dies, and the store makes a step in one transaction.
 * Errors: `store_unavailable` (transient; disk full, connection lost), `store_corrupt`, `store_newer`,
 * `data_unwritable`.
 */
export interface EventRow {
  /** Id of the tenant. */
  tenant: string;
  /** Id of the conversation. */
  conversation: string;
  /** Position in the log, from 1. */
  seq: number;
  /** Its id. */
  id: string;
  /** Time, ms since the epoch. */
  at: number;
  /** Its kind. */
  kind: string;
  /** Ids of the agents that it addresses. */
  to: readonly string[];
  /** Hash of the payload. Tells a repeated append from a conflicting one, and reveals a row that was changed later. */
  hash: string;
  /** Chain value, set by the driver; see `event-row.ts`. Null: written by a version without a chain. */
  chain: string | null;
  /** Token count of the event. */
  tokens: number;
  /** Id of the turn. */
  turn: string | null;
  /** JSON text of the rest of the event. */
  data: string;
}
/** A row before it has its seq. */
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

/** The stored record of an actor. */
export interface ActorRow extends ActorKey {
  /** Rises by one each time the lease is taken. */
  fence: number;
  /** Id of the process that holds the lease; '' if it was released. */
  owner: string;
  /** End of the lease, ms since the epoch. */
  until: number;
  /** Seq up to which the actor has processed its log. */
  processed: number;
  /** Id of the pinned turn, or null. Copied from `data`, for filters. */
  turn: string | null;
  /** Id of the turn that is to be aborted; null without a request. */
  abort: string | null;
  /** Why the actor takes no turns; null if it does. */
  parked: string | null;
  /** Whether events of an accepted step may still be missing in the log. Set by the driver. */
  outbox: boolean;
  /** When its first timer ends, ms since the epoch; null without timers. Copied from `data`, for filters. */
  wakeAt: number | null;
  /** JSON text of the rest of the record. */
  data: string;
}

/** The columns that a write sets. Absent and undefined ones stay unchanged. */
export type ActorChange = Partial<
  Pick<ActorRow, 'owner' | 'until' | 'processed' | 'turn' | 'abort' | 'parked' | 'wakeAt' | 'data'>
>;

/** A write happens only if all of these hold. */
export interface ActorExpectation {
  /** The fence that the record must have. */
  fence: number;
  /** The turn that the record must have pinned; null: none. */
  turn?: string | null;
  /** No abort of the pinned turn is requested: `abort` differs from `turn`. */
  notAborted?: true;
  /** The lease must have ended before this time (ms since the epoch), and the actor must not be parked. */
  freeAt?: number;
  /** `processed` must equal this seq. */
  processed?: number;
}

export type AcquireOutcome = { kind: 'acquired'; row: ActorRow } | { kind: 'busy'; until: number };

/** An event of a step. */
export interface StepEvent {
  /** The event, for any log of the tenant. */
  row: NewEventRow;
  /** If another event has the id: `spare` takes the first free spare id, `drop` leaves the event out. */
  ifTaken: 'spare' | 'drop';
}

/** One write: the change of an actor, with the entries and events that are stored only together with it. */
export interface ActorStep {
  /** Nothing is written unless all of these hold. */
  expect: ActorExpectation;
  /** The change of the row. */
  change: ActorChange;
  /** Takes the lease: the fence rises by one. */
  takes?: true;
  /** Entries to store; those that exist stay unchanged. */
  entries?: readonly { key: EntryKey; data: string; at: number }[];
  /** Events to append, in order per log. */
  events?: readonly StepEvent[];
  /** A process that resumes the turn appends these events again, so the store need not keep them for a crash. */
  isRepeated?: true;
  /** Called once the events are in their logs, with their outcomes in the order of `events`; see S9. */
  told?: (appended: readonly StepAppend[]) => Promise<void>;
  /**
   * Releases the lease and sets `processed` to the last event of the step in the actor's own log, or further. If an event
   * after `processed` addresses the actor, `processed` stays, and the lease may stay too. A store without transactions checks for
   * such an event once more after the release.
   */
  rests?: true;
}

/** `there`: the same event was stored before. `taken`: another event has its id, so it was dropped. */
export type StepAppend = { kind: 'appended' | 'there'; seq: number; id: string } | { kind: 'taken' };

/** The result of an accepted step. */
export interface StepOutcome {
  /** The row after the step. */
  row: ActorRow;
  /** With `rests`: an unprocessed event addresses the actor, and perhaps no process knows of it yet. */
  isAddressed: boolean;
}

/** Namespaces of the entries beside the log. Only entries of `effect` and of `note`, the key-value namespace, are replaced. */
export type Namespace =
  | 'journal'
  | 'effect'
  | 'artifact'
  | 'prompt'
  | 'body'
  | 'meta'
  | 'note'
  /** Data that can be computed again from a log. */
  | 'derived';
/** The key of an entry. */
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
  /** Maximum keys. */
  limit: number;
}

/** A line of the list of conversations. */
export interface ConversationRow {
  /** Its id. */
  id: string;
  /** Last seq. */
  head: number;
  /** Time of the last event, ms since the epoch. */
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
  /** Maximum rows. */
  limit: number;
  /** Only conversations that follow this position in the list. */
  before?: ConversationPlace;
  /** Only ids within one of these ranges; default all. */
  ranges?: readonly IdRange[];
}

/** A page. After a long scan it may have fewer rows than `limit`, or none, so only `next` marks the end. */
export interface ConversationPage {
  /** Newest first. */
  rows: ConversationRow[];
  /** Start of the next page; null at the end. */
  next: ConversationPlace | null;
  /** Number of scanned index entries; bounded for a tenant of any size. */
  looked: number;
}

/** The port that a store adapter implements (S1 to S9). */
export interface StoreDriver {
  /** Appends rows of one conversation in order, each atomically. Outcomes have the same order. */
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
  /** The event with this id; null if there is none. */
  readEvent(query: { tenant: string; conversation: string; id: string }): Promise<EventRow | null>;
  /** Last seq; 0 for a conversation that does not exist. */
  head: (query: { tenant: string; conversation: string }) => Promise<number>;
  /** Seqs of events with `agent` in `to`, after < seq <= upTo, ascending. */
  addressed(query: ActorKey & { after: number; upTo: number }): Promise<number[]>;
  /** One page, newest first. A conversation without writes meanwhile is in exactly one page. Must use an index. */
  conversations(query: ConversationsQuery): Promise<ConversationPage>;

  /** Takes the lease if it is free or has ended (`until` < now). Creates a missing row. */
  acquire(
    key: ActorKey,
    lease: { owner: string; now: number; until: number },
    /** Called with the committed events of an earlier holder that it perhaps did not append or did not pass to its own `told`. */
    told?: (rows: readonly EventRow[]) => Promise<void>,
  ): Promise<AcquireOutcome>;
  /** Returns the row after the change, or null if an expectation did not hold. */
  compareAndSet(key: ActorKey, expect: ActorExpectation, change: ActorChange): Promise<ActorRow | null>;
  /** Makes a step as one write (S8). Returns null if an expectation did not hold. */
  step(key: ActorKey, step: ActorStep): Promise<StepOutcome | null>;
  /** Sets `abort` if `turn` is the pinned turn. Returns whether it was. */
  requestAbort: (key: ActorKey, turn: string) => Promise<boolean>;
  /**
   * Sets `parked` and creates a missing row; null lets the actor run again. With `expected`, changes nothing and
   * returns false unless the stored value equals it. A missing row counts as null.
   */
  park: (key: ActorKey, parked: string | null, expected?: string | null) => Promise<boolean>;
  /** One record; null if there is none. */
  readActor(key: ActorKey): Promise<ActorRow | null>;
  /** The records of a conversation. */
  listActors(query: { tenant: string; conversation: string }): Promise<ActorRow[]>;
  /**
   * Actors that are not parked, have no live lease (`until` < now) and have work: unprocessed events addressed to them
   * since `since`, a pinned turn, an outbox, or a timer that has ended (`wakeAt` <= clock).
   */
  due(query: { now: number; clock: number; since: number; limit: number }): Promise<ActorKey[]>;

  /** Stores a value unless the key has one. `data` of the result is the value stored afterwards. `at`: ms since the epoch. */
  putOnce(key: EntryKey, data: string, at: number): Promise<{ inserted: boolean; data: string }>;
  /** One value; null if there is none. */
  readEntry(key: EntryKey): Promise<string | null>;
  /** The values in the order of the keys; null for each missing one. */
  readEntries(keys: readonly EntryKey[]): Promise<(string | null)[]>;
  /** The keys of the range, ascending by code units, at most `limit`. */
  entryKeys(range: KeyRange): Promise<string[]>;
  /** Deletes values. */
  removeEntries(keys: readonly EntryKey[]): Promise<void>;
  /** Replaces `from` by `to`. Returns false if the entry has another value. */
  swap(key: EntryKey, from: string, to: string): Promise<boolean>;
  /** Removes entries written before `before`, ms since the epoch. Returns their number. Only these two namespaces expire. */
  expire: (namespace: 'journal' | 'effect', before: number) => Promise<number>;

  /**
   * Replaces the data of stored rows and nothing else, so that `hash` and `chain` still describe what was appended. Skips missing
   * rows. Only erasure may call it.
   */
  replaceData: (
    log: { tenant: string; conversation: string },
    rows: readonly { id: string; data: string }[],
  ) => Promise<void>;
  /**
   * Makes removed and replaced data unreadable in the files of the store, as far as it can. Returns one sentence for each place
   * that may still contain such data.
   */
  scrub: () => Promise<string[]>;
  /** Removes a conversation in the order that `Store.deleteConversation` promises; see `delete-conversation.ts`. */
  deleteConversation: (log: {
    tenant: string;
    conversation: string;
  }) => Promise<{ events: number; actors: number }>;

  /** The port of the inbox, on the same logs. */
  readonly inbox: InboxDriver;

  /** Throws the error that keeps the store from working, if one is known. */
  check: () => Promise<void>;

  /** Waits for running calls, then closes the database. */
  close: () => Promise<void>;
}

/** The order of the list: newest first, then by id, descending. */
export function byPlace(a: ConversationPlace, b: ConversationPlace): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}

/** The page after a position, out of rows that are all in memory. */
export function pageOf(
  rows: readonly ConversationRow[],
  { limit, before }: { limit: number; before?: ConversationPlace | undefined },
): ConversationPage {
  const behind = before ? rows.filter((row) => byPlace(before, row) < 0) : rows;
  const page = behind.toSorted(byPlace).slice(0, limit);
  return { rows: page, next: behind.length > limit ? placeOf(page.at(-1)) : null, looked: page.length };
}

/** The position of a row in the list; null without a row. */
export function placeOf(row: ConversationRow | undefined): ConversationPlace | null {
  return row ? { at: row.at, id: row.id } : null;
}

/**
 * Data that only the inbox and the inspector use: standings of conversations (`standings.ts`) and the index of words
 * (`passages.ts`). All of it is derived from the logs, and no turn needs it. Proved by `testing/inbox-conformance.ts`.
 */
export interface InboxDriver {
  /** Stores the standing of a conversation. Changes nothing if one of a later seq is stored. */
  saveStanding(log: { tenant: string; conversation: string }, standing: NewStanding): Promise<void>;
  /** Seq of the stored standing; 0 without one. */
  standingSeq(log: { tenant: string; conversation: string }): Promise<number>;
  /** Removes the standing and the passages of a conversation, so that the process that stores standings makes them again. */
  forget(log: { tenant: string; conversation: string }): Promise<void>;
  /** One page. A conversation whose standing is not stored meanwhile is in exactly one page. */
  standings(query: StandingsQuery): Promise<StandingPage>;
  /** Counts the standings that pass the filter. Its `behind` count takes only tenant and ranges into account. */
  countStandings(filter: StandingFilter): Promise<StandingCounts>;
  /** Ids of conversations whose standing is older than their last event, newest first. */
  behind(query: { tenant: string; limit: number }): Promise<string[]>;
  /** Stores passages of a conversation. */
  savePassages(log: { tenant: string; conversation: string }, passages: readonly Passage[]): Promise<void>;
  /** The passages that meet the query, newest first, at most `limit`. */
  findPassages(query: PassagesQuery): Promise<FoundPassage[]>;
}
