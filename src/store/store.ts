import type {
  ActorAddress,
  ActorRecord,
  ConversationId,
  Event,
  EventDraft,
  Unavailability,
  PromptReceipt,
  TenantId,
  TurnId,
} from '../events/index.ts';
import type { ConversationPlace, ConversationsQuery } from './driver.ts';

/**
 * The upper half of the store port: what the rest of Troupe sees. `createStore` puts types and validation around a
 * `StoreDriver`; nothing above this file knows rows.
 */
export interface ConversationKey {
  tenant: TenantId;
  conversation: ConversationId;
}

export interface ConversationLine {
  id: ConversationId;
  /** Last seq. */
  head: number;
  /** Time of the last event, ms. */
  at: number;
}

/** `appended`: the event as it now stands. `exists`: the same id and payload was there already. */
export type Appended = { kind: 'appended' | 'exists'; event: Event };

/** A draft with what the writer has computed once: time and token count. */
export interface Entry {
  draft: EventDraft;
  at: number;
  tokens: number;
}

export type Acquired = { kind: 'acquired'; record: ActorRecord } | { kind: 'busy'; until: number };

/** A record with the reason why it cannot be read: it makes no sense, or a newer version wrote it. */
export type UnreadableActor = { address: ActorAddress } & ({ corrupt: string } | { newer: string });

export interface ActorPatch {
  owner?: string;
  until?: number;
  processed?: number;
  cancel?: null;
  parked?: Unavailability | null;
  /** Replaced as a whole, under the fence. */
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
      | 'outbox'
      | 'posts'
      | 'timers'
    >
  >;
}

/** A tool call's ledger entry. `started` without an end is settled by whoever finds it. */
export type EffectRecord =
  | { status: 'started'; argsHash: string; by: string }
  | { status: 'settled'; argsHash: string; by: string; outcome: 'done' | 'failed' | 'lost'; data: string };

/** Maximum bytes of one read of a log, for readers that page. */
export const PAGE_BYTES = 4 * 1024 * 1024;

/** Part of a log, small enough to read and fold in one turn of the event loop. */
export interface LogPage {
  /** Oldest first. */
  events: Event[];
  /** Whether it reaches the end of what was asked for; else the next begins after its last event. */
  isLast: boolean;
}

export interface Store {
  /** Appends in order. Throws `event_conflict` for an id that holds another payload; the other entries are stored. */
  append(log: ConversationKey, entries: readonly Entry[]): Promise<Appended[]>;
  /**
   * Oldest first. A record that cannot be read comes as an `error` event with code `store_corrupt` at its seq. With
   * `maxBytes` it ends with the event that reaches so many: an end of the log is an empty answer, or the head.
   */
  read(
    log: ConversationKey,
    range: { after: number; upTo?: number; limit?: number; maxBytes?: number },
  ): Promise<Event[]>;
  /**
   * The first page of a range, for whoever goes through a log of any length. One that is not the last resolves in a turn
   * of the event loop of its own, see `slices.ts`: others have theirs in between.
   */
  readPage(log: ConversationKey, range: { after: number; upTo?: number }): Promise<LogPage>;
  readById(log: ConversationKey, id: string): Promise<Event | null>;
  head(log: ConversationKey): Promise<number>;
  addressed(address: ActorAddress, range: { after: number; upTo: number }): Promise<number[]>;
  /** The newest conversations. */
  conversations(tenant: TenantId, limit: number): Promise<ConversationLine[]>;
  /** A page of all, newest first; see the driver. */
  listConversations(
    tenant: TenantId,
    query: Omit<ConversationsQuery, 'tenant'>,
  ): Promise<{ conversations: ConversationLine[]; next: ConversationPlace | null }>;

  acquire(address: ActorAddress, lease: { owner: string; now: number; until: number }): Promise<Acquired>;
  /**
   * One fenced compare-and-set: writes `patch` over `base` if the stored fence is `base.fence`, the pinned turn is
   * still `base.turn` and, with `notCancelled`, nobody asked to stop it. Null if not. Throws `actor_corrupt`.
   */
  update(base: ActorRecord, patch: ActorPatch, expect?: { notCancelled?: true }): Promise<ActorRecord | null>;
  requestCancel(address: ActorAddress, turn: TurnId): Promise<boolean>;
  /** See the driver: false where `expected` is named and is not what is there. */
  park(
    address: ActorAddress,
    parked: Unavailability | null,
    expected?: Unavailability | null,
  ): Promise<boolean>;
  /** Throws `actor_corrupt` for a record that cannot be read. */
  readActor(address: ActorAddress): Promise<ActorRecord | null>;
  listActors(log: ConversationKey): Promise<(ActorRecord | UnreadableActor)[]>;
  /**
   * Takes a task that one process at a time should do, until `until`; false if somebody has it. Nothing gives it back:
   * the time is its pace. A copy of the task by a clock that is wrong must do no harm.
   */
  claim(task: string, lease: { owner: string; now: number; until: number }): Promise<boolean>;
  /** Actors with something to do, see the driver. `now` is for leases, `clock`, the true time, for timers. */
  due(query: { now: number; clock: number; since: number; limit: number }): Promise<ActorAddress[]>;

  /** Insert-once journal of model steps: what is returned is what counts, whoever wrote it. */
  journal(tenant: TenantId, key: string, data: string, at: number): Promise<string>;
  /** Removes what was written before `before`, ms; returns how many. */
  expire(shelf: 'journal' | 'effect', before: number): Promise<number>;
  readJournal(tenant: TenantId, key: string): Promise<string | null>;
  /** `mine` says whether this caller inserted it and may execute; `stored` is what to settle it from. */
  startEffect(
    tenant: TenantId,
    id: string,
    start: { argsHash: string; by: string; at: number },
  ): Promise<{ mine: boolean; record: EffectRecord; stored: string }>;
  /** Settles a started effect once, if it still is as `stored`; returns what is stored afterwards. */
  settleEffect(
    tenant: TenantId,
    id: string,
    stored: string,
    end: { outcome: 'done' | 'failed' | 'lost'; data: string },
  ): Promise<EffectRecord>;

  putArtifact(log: ConversationKey, id: string, content: string, at: number): Promise<void>;
  readArtifact(log: ConversationKey, id: string): Promise<string | null>;
  putReceipt(tenant: TenantId, receipt: PromptReceipt, at: number): Promise<void>;
  readReceipt(tenant: TenantId, turn: TurnId, step: number): Promise<PromptReceipt | null>;
  /** Content-addressed text, stored once. */
  putBody(tenant: TenantId, hash: string, text: string, at: number): Promise<void>;
  readBody(tenant: TenantId, hash: string): Promise<string | null>;
  /** The value of a key: small, changing facts of a tenant that nothing depends on. */
  get(tenant: TenantId, key: string): Promise<string | null>;
  /**
   * Writes `to` if nothing is there, or what is there is `from`. Returns what is stored afterwards: `to`, or what
   * somebody else has written.
   */
  compareAndSet(tenant: TenantId, key: string, from: string | null, to: string): Promise<string>;
  /**
   * Removes a conversation: its events, its actors, and what their turns left in registers. Bodies and notes stay, which
   * others may share. Safe to repeat; returns how much this call has removed.
   *
   * In this order: its events address nobody any more, then its actors go, the registers, and the events, newest first.
   * So wherever it is cut off, nobody is woken by what is left of it, no turn is done again without its journal, and
   * `head` finds it until only a repeat that finds nothing is left to do.
   *
   * Afterwards it is as one that never was: seqs, fences and numbers of turns begin again. So the caller first sees to it
   * that nobody works in it. What is written meanwhile is removed too, or comes after.
   */
  deleteConversation(log: ConversationKey): Promise<{ events: number; actors: number }>;
  /** Insert-once facts of this store (its secret, its schema); returns what is stored. */
  meta(key: string, value: string): Promise<string>;

  /** Throws the error that keeps the store from working. */
  check(): Promise<void>;

  close(): Promise<void>;
}
