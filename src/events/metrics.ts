import type { ErrorCode } from '../base/errors.ts';
import type { EventKind, Guard, CompactionReason, CompactionStrategy, ToolOutcome } from './index.ts';

/**
 * The metrics of a process. The list is closed: a name that is not in it cannot be counted.
 *  M1  Methods never wait and never throw.
 *  M2  Labels take few values, never the id of a conversation, agent, turn or event. Metrics of use and cost have the
 *      tenant as a label; an exporter shows the first `TENANTS_SHOWN` tenants and adds up the others.
 *  M3  Times are in ms; exporters convert them.
 */
export interface Metrics {
  /** Adds to a counter. */
  count<N extends keyof Counters>(name: N, labels: Counters[N], by?: number): void;
  /** Records a duration, ms. */
  time<N extends keyof Timers>(name: N, labels: Timers[N], ms: number): void;
  /** Raises or lowers a level by one. */
  change(name: keyof Levels, by: 1 | -1): void;
}

type None = Record<never, never>;
type Provided = { provider: string };
type Tenanted = { tenant: string };

/** Tenants with series of their own, which last as long as the process. All others are shown as `other`. */
export const TENANTS_SHOWN = 100;

/** Values that only rise. */
export interface Counters {
  events_appended: Tenanted;
  /** Appends repeated because another writer took the seq. */
  append_retries: None;
  turns: Tenanted & { outcome: 'done' | 'failed' | 'aborted' };
  model_calls: Tenanted & Provided & { outcome: 'answered' | 'aborted' | ErrorCode };
  /** Model calls repeated after a failure, by the code of the failure. */
  model_retries: Provided & { code: ErrorCode };
  /** US dollars by list prices, as budgets count them. A call that reported no usage counts with the most it may have cost. */
  cost_usd: Tenanted & Provided;
  /** Calls of models without a known price; `cost_usd` does not contain them. */
  unpriced_calls: Provided;
  tokens: Tenanted & Provided & { kind: 'input' | 'output' | 'cache_read' | 'cache_write' | 'reasoning' };
  tool_calls: Tenanted & { outcome: ToolOutcome };
  /** Compactions of prompts. */
  compactions: { strategy: CompactionStrategy; reason: CompactionReason };
  /** Tokens that compactions removed, by our own count. */
  compaction_saved_tokens: { strategy: CompactionStrategy; reason: CompactionReason };
  /** Compaction strategies that removed nothing; another strategy may have followed. */
  compactions_failed: { reason: CompactionReason };
  /** Outgoing events whose id was already in the target log: the task had ended before. */
  posts_too_late: { kind: EventKind };
  /** Stops by guards. */
  guards: Tenanted & { guard: Guard };
  store_errors: { code: ErrorCode };
  /** Stored events that were found damaged, each once per process. */
  damaged_events: { damage: 'altered' | 'unreadable' };
  /** Wakes that the queue did not accept; the sweeper makes up for them. */
  queue_errors: { code: ErrorCode };
  /** Jobs in the queue that are malformed or not Troupe's. */
  wakes_ignored: None;
  /** Repairs in Redis: a key of the wrong type was replaced, or the queue was emptied. */
  queue_mended: { part: 'queue' | 'key' };
  leases_lost: None;
  sweeps: None;
  /** Actors with work that a sweep woke. */
  sweep_found: None;
  /** Model calls refused by a budget. */
  budget_refused: Tenanted & { scope: 'tenant' | 'conversation' | 'tree' | 'agent' };
  /** Changes of an account repeated because another process wrote first. */
  budget_retries: None;
  /** Attempts to deliver to webhooks. */
  webhook_deliveries: Tenanted & { outcome: 'taken' | 'refused' | 'gone' | 'failed' };
  /** Events received from relays. */
  nostr_received: None;
  /** Received events and other frames that were refused. `reason` is one of a closed list in `@troupe/nostr`. */
  nostr_refused: { reason: string };
  /** HTTP requests refused by access rules or rate limits. */
  requests_refused: { code: string };
  /** Attempts to publish an event to a relay. */
  nostr_published: { outcome: 'published' | 'refused' | 'failed' };
  /** Actors that failed: they take no turns until a person resumes them. */
  actors_failed: Tenanted & { code: ErrorCode };
}

/** Durations, ms. */
export interface Timers {
  /** From the wake to the start of its activation. */
  wake_wait: None;
  activation: { outcome: 'done' | 'busy' | 'failed' };
  model_call: Provided;
  /** From the request to the first text, reasoning or tool call. */
  model_first_token: Provided;
  tool_call: { outcome: ToolOutcome };
  /** From the start of a turn to its commit. */
  turn: { outcome: 'done' | 'failed' | 'aborted' };
  /** Parts of a turn, if the turn had them. All but `wait` are within `turn`. */
  turn_part: { part: TurnPart };
}

/**
 * `wait`: from the newest event that the turn answers to its start. `relief`: compaction. `admission`: waiting for the
 * provider's limits, for budgets and for writing answers. `stream`: from the first token to the last.
 */
const TURN_PARTS = [
  'wait',
  'build',
  'relief',
  'admission',
  'first_token',
  'stream',
  'tools',
  'back_off',
  'commit',
] as const;
export type TurnPart = (typeof TURN_PARTS)[number];

/** Values that rise and fall. */
export interface Levels {
  /** Actors whose lease this process holds. */
  leases_held: None;
}

export const NO_METRICS: Metrics = { count: () => {}, time: () => {}, change: () => {} };
