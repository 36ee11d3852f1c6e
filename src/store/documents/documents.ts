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
 * Everything that the document driver requires of a database: writes of single documents, unique keys, and conditional
 * updates. Any server that speaks the MongoDB protocol can implement it, and so can memory.
 *  D1  Each write changes one document, atomically; `insert` of several documents is a sequence of such writes.
 *  D2  A condition and its change are one atomic step.
 *  D3  A write whose promise has resolved is visible to every later operation of any process, and survives as S5 says.
 *  D4  A rejected promise means "unknown": the write may have happened.
 */
export interface Documents {
  /** The logs. */
  events: EventDocuments;
  /** One document per actor. */
  actors: ActorDocuments;
  /** What is stored beside the logs. */
  entries: EntryDocuments;
  /** For the inbox. */
  standings: StandingDocuments;
  /** Texts that are searched. */
  passages: PassageDocuments;
  /** Makes a step one transaction, where the database can. `known`: where the actor's log ended when it was last seen. */
  step?: WholeSteps;
  /** See the driver. */
  scrub(): Promise<string[]>;
  /** Notifies of a lost connection: data seen before, but not acknowledged to this process, may be gone. */
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

/** What such a step has written. */
export interface WholeStepped {
  /** See the driver. */
  outcome: StepOutcome;
  /** In the order of the step's events. */
  appended: readonly StepAppend[];
  /** The rows of those that were not there before. */
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
  /** Place of the last event. */
  seq: number;
  /** Its chain value; null without one. */
  chain: string | null;
}

/**
 * Unique: (tenant, conversation, id) and (tenant, conversation, seq). Never changed, except by a removal, by an erasure, and by
 * `unchain` before the append is acknowledged.
 */
export interface EventDocuments {
  /** Inserts in order and stops at the first whose id or seq is taken; returns the number of inserted rows. */
  insert(rows: readonly EventRow[]): Promise<number>;
  /** Null: none. */
  find(log: LogKey, id: string): Promise<EventRow | null>;
  /** after < seq <= upTo, in any order. */
  keys(log: LogKey, range: { after: number; upTo: number }): Promise<(LogEnd & { id: string })[]>;
  /** The search may begin at `known`, a seq that has existed. */
  last(log: LogKey, known?: number): Promise<LogEnd>;
  /** Removes the chain value of an event, if the event exists. */
  unchain(log: LogKey, id: string): Promise<void>;
  /** after < seq <= upTo, oldest first. `maxBytes`: see `readEvents` of the driver. */
  range(
    log: LogKey,
    range: { after: number; upTo: number; limit: number; maxBytes?: number },
  ): Promise<EventRow[]>;
  /** Seqs of events that address the agent, after < seq <= upTo, ascending. */
  addressed(key: ActorKey, range: { after: number; upTo: number }): Promise<number[]>;
  /**
   * Calls `visit` with the actors that were addressed at or after `since`, a page of events at a time, oldest events first.
   * Within a page each is there once, with the seq of the newest such event in it and the time of the oldest.
   */
  visitAddressees(since: number, visit: (page: Addressee[]) => Promise<void>): Promise<void>;
  /** Replaces the data of the events that exist. For erasure alone. */
  replaceData(log: LogKey, rows: readonly { id: string; data: string }[]): Promise<void>;
  /** Removes the addresses of all events: the first step of a removal. */
  unaddress(log: LogKey): Promise<void>;
  /** Removes the newest events with seq > `after`, at most `limit`; returns their number. */
  removeNewest(log: LogKey, range: { after: number; limit: number }): Promise<number>;
  /** See the driver. */
  conversations(query: ConversationsQuery): Promise<ConversationPage>;
}

/** An actor that events address. */
export interface Addressee extends ActorKey {
  /** Of its newest event. */
  seq: number;
  /** Time of its oldest event, ms since the epoch. */
  at: number;
}

/** All that is given must hold, or the document stays as it is. */
export interface ActorCondition {
  /** The fence is this. */
  fence?: number;
  /** The pinned turn is this. */
  turn?: string | null;
  /** `abort` is not `turn`. */
  notAborted?: true;
  /** The lease ended before this time: `until` < `freeAt`. */
  freeAt?: number;
  /** `processed` is this. */
  processed?: number;
  /** `parked` is this. */
  parked?: string | null;
  /** `outbox` is this. */
  outbox?: boolean;
}

/** `outbox`: whether `data` holds events to append as well; see `actor-steps.ts`. */
export type DocumentChange = ActorChange & { outbox?: boolean; raiseFence?: true };

/** Unique: (tenant, conversation, agent). */
export interface ActorDocuments {
  /** False if the key is taken. */
  insert(row: ActorRow): Promise<boolean>;
  /** Null: none. */
  find(key: ActorKey): Promise<ActorRow | null>;
  /** The rows that exist, without their data, in any order. */
  findMany(keys: readonly ActorKey[]): Promise<Omit<ActorRow, 'data'>[]>;
  /** By agent, ascending. */
  list(log: LogKey): Promise<ActorRow[]>;
  /**
   * One conditional update. Returns the document after it, or null if it is missing or the condition did not hold. An
   * unreadable document is updated as well, and then rejects with `actor_corrupt`.
   */
  update(key: ActorKey, condition: ActorCondition, change: DocumentChange): Promise<ActorRow | null>;
  /** Actors with a pinned turn, an outbox or `wakeAt` <= `clock`, not parked, whose lease ended before `now`. */
  unfinished(query: { now: number; clock: number; limit: number }): Promise<ActorKey[]>;
  /** Removes all actors of a conversation; returns their number. */
  remove(log: LogKey): Promise<number>;
}

/** Unique: (tenant, namespace, key). */
export interface EntryDocuments {
  /** False if the key is taken. */
  insert(key: EntryKey, data: string, at: number): Promise<boolean>;
  /** Null: none. */
  find(key: EntryKey): Promise<string | null>;
  /** Null for each missing entry; in the order of the keys. */
  findMany(keys: readonly EntryKey[]): Promise<(string | null)[]>;
  /** Replaces `from` by `to`; false if the entry has another value. */
  replace(key: EntryKey, from: string, to: string): Promise<boolean>;
  /** Removes entries of a namespace written before `before`, at most `limit`; returns their number. */
  removeBefore(namespace: Namespace, before: number, limit: number): Promise<number>;
  /** Ascending. */
  keysBetween(range: KeyRange): Promise<string[]>;
  /** Removes those that exist. */
  remove(keys: readonly EntryKey[]): Promise<void>;
}

/** A part of the document of a conversation, which is created by its first event and removed with its last one. */
export interface StandingDocuments {
  /** See `saveStanding` of the inbox. */
  save(log: LogKey, standing: NewStanding): Promise<void>;
  /** Seq of the stored standing; 0 without one. */
  seqOf(log: LogKey): Promise<number>;
  /** Removes the stored standing, so that the conversation is behind. */
  remove(log: LogKey): Promise<void>;
  /** See the inbox. */
  list(query: StandingsQuery): Promise<StandingPage>;
  /** See the inbox. */
  count(filter: StandingFilter): Promise<StandingCounts>;
  /** See the inbox. */
  behind(query: { tenant: string; limit: number }): Promise<string[]>;
}

/** Unique: (tenant, conversation, first). Removed with the last event of their conversation. */
export interface PassageDocuments {
  /** See `savePassages` of the inbox. */
  save(log: LogKey, passages: readonly Passage[]): Promise<void>;
  /** Removes the passages of a conversation. */
  remove(log: LogKey): Promise<void>;
  /** See `findPassages` of the inbox. */
  find(query: PassagesQuery): Promise<FoundPassage[]>;
}
