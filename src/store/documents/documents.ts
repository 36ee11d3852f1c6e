import type {
  ActorChange,
  ActorKey,
  ActorRow,
  ActorStep,
  ConversationPage,
  ConversationsQuery,
  EventRow,
  EntryKey,
  KeyRange,
  Namespace,
  StepAppend,
  StepOutcome,
} from '../driver.ts';
import type { FoundPassage, Passage, PassagesQuery } from '../passages.ts';
import type {
  NewStanding,
  StandingCounts,
  StandingFilter,
  StandingPage,
  StandingsQuery,
} from '../standings.ts';

/**
 * Everything that the document driver requires of a database: writes of single documents, unique keys and conditional
 * updates. Servers of the MongoDB protocol, PostgreSQL and memory implement it.
 *  D1  Each write changes one document, atomically; `insert` of several documents is a sequence of such writes.
 *  D2  A condition and its change are one atomic step.
 *  D3  A write whose promise has resolved is visible to every later operation of any process, and as durable as S5 says.
 *  D4  A rejected promise means "unknown": the write may have happened.
 */
export interface Documents {
  /** The logs. */
  events: EventDocuments;
  /** One document per actor. */
  actors: ActorDocuments;
  /** The entries beside the logs. */
  entries: EntryDocuments;
  /** Standings of conversations, for the inbox. */
  standings: StandingDocuments;
  /** The index of words, for searches. */
  passages: PassageDocuments;
  /** Makes a step in one transaction; absent if the database cannot. `known`: end of the actor's log when last seen. */
  step?: WholeSteps;
  /** See `scrub` of the driver. */
  scrub(): Promise<string[]>;
  /** Calls `listener` when a connection is lost. Data read before, whose write was not acknowledged here, may then be gone. */
  onLost?(listener: () => void): void;
  /** Closes the connections. */
  close(): Promise<void>;
}

/** A step in one transaction. Null: an expectation did not hold. */
export type WholeSteps = (
  key: ActorKey,
  step: ActorStep,
  known: LogEnd | undefined,
) => Promise<WholeStepped | null>;

/** The result of a step in one transaction. */
export interface WholeStepped {
  /** The outcome of the step, as the driver returns it. */
  outcome: StepOutcome;
  /** The outcome of each event, in the order of the step's events. */
  appended: readonly StepAppend[];
  /** The rows that were inserted. */
  placed: readonly EventRow[];
}

/** Names a log. */
export interface LogKey {
  /** Id of the tenant. */
  tenant: string;
  /** Id of the conversation. */
  conversation: string;
}

/** The end of a log: seq and chain value of its last event; seq 0 without events. */
export interface LogEnd {
  /** Seq of the last event. */
  seq: number;
  /** Chain value of the last event; null without one. */
  chain: string | null;
}

/**
 * Unique: (tenant, conversation, id) and (tenant, conversation, seq). Never changed, except by a removal, by an erasure, and by
 * `unchain` before the append is acknowledged.
 */
export interface EventDocuments {
  /** Inserts in order and stops at the first row whose id or seq is taken. Returns the number of inserted rows. */
  insert(rows: readonly EventRow[]): Promise<number>;
  /** The event with this id; null if there is none. */
  find(log: LogKey, id: string): Promise<EventRow | null>;
  /** Ids, seqs and chain values of the events with after < seq <= upTo, in any order. */
  keys(log: LogKey, range: { after: number; upTo: number }): Promise<(LogEnd & { id: string })[]>;
  /** The end of the log. The search may begin at `known`, a seq that has existed. */
  last(log: LogKey, known?: number): Promise<LogEnd>;
  /** Removes the chain value of an event, if the event exists. */
  unchain(log: LogKey, id: string): Promise<void>;
  /** The events with after < seq <= upTo, oldest first. `maxBytes`: see `readEvents` of the driver. */
  range(
    log: LogKey,
    range: { after: number; upTo: number; limit: number; maxBytes?: number },
  ): Promise<EventRow[]>;
  /** Seqs of events that address the agent, after < seq <= upTo, ascending. */
  addressed(key: ActorKey, range: { after: number; upTo: number }): Promise<number[]>;
  /**
   * Calls `visit` with the actors addressed at or after `since` (ms since the epoch), a page of events at a time, oldest events
   * first. A page has each actor once, with the seq of the newest event of the page that addresses it and the time of the oldest.
   */
  visitAddressees(since: number, visit: (page: Addressee[]) => Promise<void>): Promise<void>;
  /** Replaces the data of the events that exist. Only erasure may call it. */
  replaceData(log: LogKey, rows: readonly { id: string; data: string }[]): Promise<void>;
  /** Removes the addressees from all events: the first step of removing a conversation. */
  unaddress(log: LogKey): Promise<void>;
  /** Removes the newest events with seq > `after`, at most `limit`. Returns their number. */
  removeNewest(log: LogKey, range: { after: number; limit: number }): Promise<number>;
  /** See `conversations` of the driver. */
  conversations(query: ConversationsQuery): Promise<ConversationPage>;
}

/** An actor that events address. */
export interface Addressee extends ActorKey {
  /** Seq of the newest event that addresses it. */
  seq: number;
  /** Time of the oldest event that addresses it, ms since the epoch. */
  at: number;
}

/** Every given field must hold, otherwise the update changes nothing. */
export interface ActorCondition {
  /** `fence` equals this. */
  fence?: number;
  /** The pinned turn equals this. */
  turn?: string | null;
  /** No abort of the pinned turn is requested: `abort` differs from `turn`. */
  notAborted?: true;
  /** The lease ended before this time: `until` < `freeAt`, ms since the epoch. */
  freeAt?: number;
  /** `processed` equals this. */
  processed?: number;
  /** `parked` equals this. */
  parked?: string | null;
  /** `outbox` equals this. */
  outbox?: boolean;
}

/** `outbox`: whether `data` also holds events to append; see `actor-steps.ts`. `raiseFence`: adds one to the fence. */
export type DocumentChange = ActorChange & { outbox?: boolean; raiseFence?: true };

/** Unique: (tenant, conversation, agent). */
export interface ActorDocuments {
  /** Returns false if the key is taken. */
  insert(row: ActorRow): Promise<boolean>;
  /** The row; null if there is none. */
  find(key: ActorKey): Promise<ActorRow | null>;
  /** The rows that exist, without their data, in any order. */
  findMany(keys: readonly ActorKey[]): Promise<Omit<ActorRow, 'data'>[]>;
  /** The actors of a conversation, by agent id, ascending. */
  list(log: LogKey): Promise<ActorRow[]>;
  /**
   * One conditional update. Returns the row after it, or null if it is missing or the condition did not hold. A
   * document that cannot be read is updated too, and the call then rejects with `actor_corrupt`.
   */
  update(key: ActorKey, condition: ActorCondition, change: DocumentChange): Promise<ActorRow | null>;
  /** Actors that are not parked, whose lease ended before `now`, and that have a pinned turn, an outbox or `wakeAt` <= `clock`. */
  unfinished(query: { now: number; clock: number; limit: number }): Promise<ActorKey[]>;
  /** Removes all actors of a conversation; returns their number. */
  remove(log: LogKey): Promise<number>;
}

/** Unique: (tenant, namespace, key). */
export interface EntryDocuments {
  /** Returns false if the key is taken. `at`: ms since the epoch. */
  insert(key: EntryKey, data: string, at: number): Promise<boolean>;
  /** The data; null if there is none. */
  find(key: EntryKey): Promise<string | null>;
  /** The data of each entry, in the order of the keys; null for each that is missing. */
  findMany(keys: readonly EntryKey[]): Promise<(string | null)[]>;
  /** Replaces `from` by `to`. Returns false if the entry has another value. */
  replace(key: EntryKey, from: string, to: string): Promise<boolean>;
  /** Removes entries of a namespace written before `before` (ms since the epoch), at most `limit`. Returns their number. */
  removeBefore(namespace: Namespace, before: number, limit: number): Promise<number>;
  /** The keys of the range, ascending. */
  keysBetween(range: KeyRange): Promise<string[]>;
  /** Removes the entries that exist. */
  remove(keys: readonly EntryKey[]): Promise<void>;
}

/** A standing is a part of its conversation's document, which is created by the first event and removed with the last one. */
export interface StandingDocuments {
  /** See `saveStanding` of `InboxDriver`. */
  save(log: LogKey, standing: NewStanding): Promise<void>;
  /** Seq of the stored standing; 0 without one. */
  seqOf(log: LogKey): Promise<number>;
  /** Removes the stored standing, so that `behind` finds the conversation. */
  remove(log: LogKey): Promise<void>;
  /** See `standings` of `InboxDriver`. */
  list(query: StandingsQuery): Promise<StandingPage>;
  /** See `countStandings` of `InboxDriver`. */
  count(filter: StandingFilter): Promise<StandingCounts>;
  /** See `behind` of `InboxDriver`. */
  behind(query: { tenant: string; limit: number }): Promise<string[]>;
}

/** Unique: (tenant, conversation, first). Removed with the last event of their conversation. */
export interface PassageDocuments {
  /** See `savePassages` of `InboxDriver`. */
  save(log: LogKey, passages: readonly Passage[]): Promise<void>;
  /** Removes the passages of a conversation. */
  remove(log: LogKey): Promise<void>;
  /** See `findPassages` of `InboxDriver`. */
  find(query: PassagesQuery): Promise<FoundPassage[]>;
}
