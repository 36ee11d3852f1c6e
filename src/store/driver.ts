/**
 * The lower half of the store port: adapters move plain rows, `store.ts` gives them types and validation.
 * No vendor type crosses this file. Everything here needs only single-record atomicity and unique keys, so that a
 * document database without transactions can serve it.
 *
 * Contract, proved by `testing/store-conformance.ts`:
 *  S1  `seq` of a conversation is dense from 1 and never reused, under any number of concurrent writers; only a
 *      conversation that was removed begins again.
 *  S2  One row per (tenant, conversation, id). A second append of an id changes nothing and returns the first row.
 *  S3  An actor row changes only by `acquire` (raises the fence), `compareAndSet` (names the fence), and the two
 *      single-field writes `requestCancel` and `park`, which never touch the rest. It goes only with its conversation.
 *  S4  A register is written once; the first writer wins and every later one is given the winner's data.
 *  S5  What a resolved promise reported survives the end of the process. `append`, `requestCancel`, `park` and the first
 *      write of an effect, on which somebody outside depends, also survive the loss of power; all other writes are
 *      ordered: what survives is always a prefix, so losing the end of it is a crash a moment earlier.
 *      A rejected promise means "unknown": the caller must look again.
 *  S6  Text survives to the code unit: NUL, lone surrogates, '$', '.', '__proto__'.
 * Errors: `store_unavailable` (transient; disk full, connection lost), `store_corrupt`, `store_newer`,
 * `data_unwritable`.
 */
export interface EventRow {
  tenant: string;
  conversation: string;
  seq: number;
  id: string;
  at: number;
  kind: string;
  to: readonly string[];
  /** Hash of the payload, to tell a repeated append from a conflicting one. */
  hash: string;
  tokens: number;
  turn: string | null;
  /** JSON text of the rest of the event. */
  data: string;
}
export type NewEventRow = Omit<EventRow, 'seq'>;

/** `duplicate`: the id was there already; `hash` is that of the stored row. */
export type AppendOutcome =
  | { kind: 'appended'; seq: number }
  | { kind: 'duplicate'; seq: number; hash: string };

export interface ActorKey {
  tenant: string;
  conversation: string;
  agent: string;
}

export interface ActorRow extends ActorKey {
  fence: number;
  owner: string;
  until: number;
  processed: number;
  /** Id of the pinned turn, or null. A copy of what `data` holds, for filters. */
  turn: string | null;
  cancel: string | null;
  parked: string | null;
  /** Whether committed events wait to be sent. */
  outbox: boolean;
  /** When the first of its timers is over, ms; null without timers. A copy of what `data` holds, for filters. */
  wakeAt: number | null;
  /** JSON text of the rest of the record. */
  data: string;
}

export type ActorChange = Partial<
  Pick<
    ActorRow,
    'owner' | 'until' | 'processed' | 'turn' | 'cancel' | 'parked' | 'outbox' | 'wakeAt' | 'data'
  >
>;

/** The write happens only if all of these hold. `notCancelled` = the row's `cancel` is not its `turn`. */
export interface ActorExpectation {
  fence: number;
  turn?: string | null;
  notCancelled?: true;
}

export type AcquireOutcome = { kind: 'acquired'; row: ActorRow } | { kind: 'busy'; until: number };

/** Insert-once records beside the log. Only `effect` and `note` rows are ever swapped. */
export type Namespace = 'journal' | 'effect' | 'artifact' | 'prompt' | 'body' | 'meta' | 'note';
export interface EntryKey {
  tenant: string;
  shelf: Namespace;
  key: string;
}

export interface ConversationRow {
  id: string;
  /** Last seq. */
  head: number;
  /** Time of the last event, ms. */
  at: number;
}

/** Ids from `from` on and before `to`, by their code units. */
export interface IdRange {
  from: string;
  to: string;
}

/** A position in the list of conversations, which is ordered newest first, then by id, descending. */
export interface ConversationPlace {
  at: number;
  id: string;
}

export interface ConversationsQuery {
  tenant: string;
  limit: number;
  /** Only conversations behind this position. */
  before?: ConversationPlace;
  /** Only ids within one of these ranges; default all. */
  ranges?: readonly IdRange[];
}

/** May have fewer rows than requested, or none, if many entries were scanned: only `next` marks the end. */
export interface ConversationPage {
  rows: ConversationRow[];
  /** Start of the next page; null at the end. */
  next: ConversationPlace | null;
  /** Scanned index entries; bounded whatever the tenant holds. */
  looked: number;
}

export interface StoreDriver {
  /** Appends rows of one conversation in order, each by itself; outcomes are in the same order. */
  append(rows: readonly NewEventRow[]): Promise<AppendOutcome[]>;
  /**
   * Rows with after < seq <= upTo, oldest first, at most `limit`. With `maxBytes` the row whose `data`, as UTF-8,
   * brings the sum to as much is the last one, and the text of those behind it is not read.
   */
  readEvents(query: {
    tenant: string;
    conversation: string;
    after: number;
    upTo?: number;
    limit: number;
    maxBytes?: number;
  }): Promise<EventRow[]>;
  readEvent(query: { tenant: string; conversation: string; id: string }): Promise<EventRow | null>;
  /** Last seq; 0 for a conversation that does not exist. */
  head(query: { tenant: string; conversation: string }): Promise<number>;
  /** Seqs of events with `agent` in `to`, after < seq <= upTo, ascending. */
  addressed(query: ActorKey & { after: number; upTo: number }): Promise<number[]>;
  /** By an index, newest first. A conversation that nobody writes to meanwhile is in one page of all. */
  conversations(query: ConversationsQuery): Promise<ConversationPage>;

  /** Takes the lease if it is free or over (`until` < now), creating the row if there is none. */
  acquire(key: ActorKey, lease: { owner: string; now: number; until: number }): Promise<AcquireOutcome>;
  /** The row after the change, or null if an expectation did not hold. */
  compareAndSet(key: ActorKey, expect: ActorExpectation, change: ActorChange): Promise<ActorRow | null>;
  /** Sets `cancel` if `turn` is the pinned turn; says whether it was. */
  requestCancel(key: ActorKey, turn: string): Promise<boolean>;
  /**
   * Sets `parked`, creating the row if there is none; null wakes the actor again. Where `expected` is named it changes
   * nothing, and says false, unless that is what is there; of no row it is null.
   */
  park(key: ActorKey, parked: string | null, expected?: string | null): Promise<boolean>;
  readActor(key: ActorKey): Promise<ActorRow | null>;
  listActors(query: { tenant: string; conversation: string }): Promise<ActorRow[]>;
  /**
   * Actors with something to do and no live lease (`until` < now): addressed since `since` and not processed, or with a
   * pinned turn, an outbox, or a timer that is over (`wakeAt` <= clock). Parked ones are left out.
   */
  due(query: { now: number; clock: number; since: number; limit: number }): Promise<ActorKey[]>;

  putOnce(key: EntryKey, data: string, at: number): Promise<{ inserted: boolean; data: string }>;
  readEntry(key: EntryKey): Promise<string | null>;
  /** Replaces `from` by `to`; false if the register holds something else. */
  swap(key: EntryKey, from: string, to: string): Promise<boolean>;
  /** Removes registers of a shelf written before `before`; returns how many. */
  expire(shelf: Namespace, before: number): Promise<number>;

  /** Removes all of a conversation, in the order that `Store` promises; see `delete-conversation.ts`. */
  deleteConversation(log: {
    tenant: string;
    conversation: string;
  }): Promise<{ events: number; actors: number }>;

  /** Throws the error that keeps it from working, if it knows one. */
  check(): Promise<void>;

  close(): Promise<void>;
}

/** The order of the list: newest first, then by id, descending. */
export function byPlace(a: ConversationPlace, b: ConversationPlace): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}

/** The page behind a position, for drivers that hold all rows in memory. */
export function pageOf(
  rows: readonly ConversationRow[],
  { limit, before }: { limit: number; before?: ConversationPlace | undefined },
): ConversationPage {
  const behind = before ? rows.filter((row) => byPlace(before, row) < 0) : rows;
  const page = behind.toSorted(byPlace).slice(0, limit);
  return { rows: page, next: behind.length > limit ? placeOf(page.at(-1)) : null, looked: page.length };
}

export function placeOf(row: ConversationRow | undefined): ConversationPlace | null {
  return row ? { at: row.at, id: row.id } : null;
}
