import type { KeyRange } from '../conversation-keys.ts';
import type {
  ActorChange,
  ActorKey,
  ActorRow,
  ConversationPage,
  ConversationsQuery,
  EventRow,
  EntryKey,
  Namespace,
} from '../driver.ts';

/**
 * What the document driver asks of a database, and nothing more: writes of single documents, unique keys, and an update
 * that happens only if its condition holds. Any server that speaks the MongoDB protocol can give it, and so can memory.
 *  D1  Each write touches one document and happens wholly or not at all; `insert` of several is a row of such writes.
 *  D2  A condition and its change are one step: nothing comes between.
 *  D3  What a resolved promise reported is seen by every later operation of any process, and survives as S5 asks.
 *  D4  A rejected promise means "unknown": the write may have been done.
 */
export interface Documents {
  events: EventDocuments;
  actors: ActorDocuments;
  registers: RegisterDocuments;
  /** Where the database can be lost and come back: what was seen before, but not acknowledged to us, may be gone. */
  onLost?(listener: () => void): void;
  close(): Promise<void>;
}

export interface LogKey {
  tenant: string;
  conversation: string;
}

/** Unique: (tenant, conversation, id) and (tenant, conversation, seq). Never changed; removed only with their conversation. */
export interface EventDocuments {
  /** Inserts in order and stops at the first whose id or seq is taken; returns how many were inserted. */
  insert(rows: readonly EventRow[]): Promise<number>;
  find(log: LogKey, id: string): Promise<EventRow | null>;
  /** after < seq <= upTo, in any order. */
  keys(log: LogKey, range: { after: number; upTo: number }): Promise<{ seq: number; id: string }[]>;
  /** Highest seq; 0 if there is none. `known` was seen to exist: there is no need to look before it. */
  last(log: LogKey, known?: number): Promise<number>;
  /** after < seq <= upTo, oldest first. `maxBytes` as of the driver's `readEvents`. */
  range(
    log: LogKey,
    range: { after: number; upTo: number; limit: number; maxBytes?: number },
  ): Promise<EventRow[]>;
  /** Seqs of events with the agent in `to`, after < seq <= upTo, ascending. */
  addressed(key: ActorKey, range: { after: number; upTo: number }): Promise<number[]>;
  /** Actors addressed at or after `since`, each once, with the newest such seq and the time of the oldest. */
  addressees(since: number): Promise<Addressee[]>;
  /** They address nobody any more: the first step of a removal. */
  unaddress(log: LogKey): Promise<void>;
  /** Removes the newest with seq > `after`, at most `limit`; returns how many. */
  removeNewest(log: LogKey, range: { after: number; limit: number }): Promise<number>;
  /** As of the driver. */
  conversations(query: ConversationsQuery): Promise<ConversationPage>;
}

export interface Addressee extends ActorKey {
  seq: number;
  at: number;
}

export interface ActorCondition {
  fence?: number;
  turn?: string | null;
  /** `cancel` is not `turn`. */
  notCancelled?: true;
  /** The lease was over before this time: `until` < `freeAt`. */
  freeAt?: number;
  parked?: string | null;
}

/** Unique: (tenant, conversation, agent). */
export interface ActorDocuments {
  /** False if there is one already. */
  insert(row: ActorRow): Promise<boolean>;
  find(key: ActorKey): Promise<ActorRow | null>;
  /** Those of them that exist, without their data, in any order. */
  findMany(keys: readonly ActorKey[]): Promise<Omit<ActorRow, 'data'>[]>;
  /** By agent, ascending. */
  list(log: LogKey): Promise<ActorRow[]>;
  /**
   * One conditional update; the document after it, or null if there is none or the condition did not hold. A document
   * that cannot be read is written all the same and then rejects with `actor_corrupt`.
   */
  update(
    key: ActorKey,
    condition: ActorCondition,
    change: ActorChange & { raiseFence?: true },
  ): Promise<ActorRow | null>;
  /** Actors with a pinned turn, an outbox or `wakeAt` <= `clock`, not parked, whose lease was over before `now`. */
  unfinished(query: { now: number; clock: number; limit: number }): Promise<ActorKey[]>;
  /** Removes all of a conversation; returns how many. */
  remove(log: LogKey): Promise<number>;
}

/** Unique: (tenant, shelf, key). */
export interface RegisterDocuments {
  /** False if there is one already. */
  insert(key: EntryKey, data: string, at: number): Promise<boolean>;
  find(key: EntryKey): Promise<string | null>;
  /** Replaces `from` by `to`; false if it holds something else. */
  replace(key: EntryKey, from: string, to: string): Promise<boolean>;
  /** Removes those of a shelf written before `before`, at most `limit`; returns how many. */
  removeBefore(shelf: Namespace, before: number, limit: number): Promise<number>;
  /** Ascending. */
  keysBetween(range: KeyRange): Promise<string[]>;
  remove(keys: readonly EntryKey[]): Promise<void>;
}
