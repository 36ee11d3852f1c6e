import type { ErrorCode } from './errors.ts';
import type { EventKind, Guard, CompactionReason, CompactionStrategy, ToolOutcome } from './events/index.ts';

/**
 * What a process tells its operator in numbers. A closed list: a name that is not here cannot be counted.
 *  M1  Methods never wait and never throw.
 *  M2  Labels take few values: never an id of a conversation, agent, turn or event. Tenants are told apart where it is
 *      about what they do and pay for; of many, whoever shows them tells only the first apart (`TENANTS_SHOWN`).
 *  M3  Times are given in milliseconds; whoever shows them converts.
 */
export interface Metrics {
  count<N extends keyof Counters>(name: N, labels: Counters[N], by?: number): void;
  time<N extends keyof Timers>(name: N, labels: Timers[N], ms: number): void;
  /** Adds to a level, or takes from it. */
  change(name: keyof Levels, by: 1 | -1): void;
}

type None = Record<never, never>;
type Provided = { provider: string };
type Tenanted = { tenant: string };

/** The rest of the tenants are one, `other`: each makes series of its own, for as long as the process lives. */
export const TENANTS_SHOWN = 100;

/** What only rises. */
export interface Counters {
  events_appended: Tenanted;
  /** Another writer had taken the seq first. */
  append_retries: None;
  turns: Tenanted & { outcome: 'done' | 'failed' | 'aborted' };
  model_calls: Tenanted & Provided & { outcome: 'answered' | 'aborted' | ErrorCode };
  /** Model calls that are made again after a failure, by what had failed. */
  model_retries: Provided & { code: ErrorCode };
  /** US dollars by list prices, as budgets count them: of a call that told nothing, the most it may have cost. */
  cost_usd: Tenanted & Provided;
  /** Model calls whose model has no price: they are not in `cost_usd`. */
  unpriced_calls: Provided;
  tokens: Tenanted & Provided & { kind: 'input' | 'output' | 'cache_read' | 'cache_write' | 'reasoning' };
  tool_calls: Tenanted & { outcome: ToolOutcome };
  /** Prompts that were made shorter. */
  compactions: { strategy: CompactionStrategy; reason: CompactionReason };
  /** Tokens by which prompts became shorter, as counted here. */
  compaction_saved_tokens: { strategy: CompactionStrategy; reason: CompactionReason };
  /** Tries to make a prompt shorter that came to nothing; another way may have worked then. */
  compactions_failed: { reason: CompactionReason };
  /** Events for the logs of others that came after another with the same id: ends of tasks that had ended. */
  posts_too_late: { kind: EventKind };
  /** What was stopped, by guard. */
  guards: Tenanted & { guard: Guard };
  store_errors: { code: ErrorCode };
  /** Wakes that could not be given to the queue; the sweeper makes up for them. */
  queue_errors: { code: ErrorCode };
  /** Jobs that are not ours or not well-formed. */
  wakes_ignored: None;
  /** Keys in Redis that were not what they must be and were put right, and times that the queue was emptied for it. */
  queue_mended: { part: 'queue' | 'key' };
  leases_lost: None;
  sweeps: None;
  /** Actors that a sweep found with work and woke. */
  sweep_found: None;
  /** Model calls that were not made. */
  budget_refused: Tenanted & { scope: 'tenant' | 'conversation' | 'tree' | 'agent' };
  /** Another process had written the account first. */
  budget_retries: None;
  /** Tries to deliver to webhooks. */
  webhook_deliveries: Tenanted & { outcome: 'taken' | 'refused' | 'gone' | 'failed' };
  /** Events that relays sent. */
  nostr_received: None;
  /** What of them, and of other frames, was not taken; the reasons are a closed list of `nostr/refused.ts`. */
  nostr_refused: { reason: string };
  /** Requests that were not answered for who asked, what for or how often. */
  requests_refused: { code: string };
  /** Tries to publish an event to a relay. */
  nostr_published: { outcome: 'published' | 'refused' | 'failed' };
  /** Actors set aside: they take no turns until somebody resumes them. */
  actors_failed: Tenanted & { code: ErrorCode };
}

/** How long things took. */
export interface Timers {
  /** From the wake to the start of what it asked for. */
  wake_wait: None;
  activation: { outcome: 'done' | 'busy' | 'failed' };
  model_call: Provided;
  /** From the request to the first word, reasoning or call. */
  model_first_token: Provided;
  tool_call: { outcome: ToolOutcome };
  /** From the start of a turn to its commit. */
  turn: { outcome: 'done' | 'failed' | 'aborted' };
  /** Where the time of a turn went; all but `wait` are within `turn`. A part that a turn did not have is not in it. */
  turn_part: { part: TurnPart };
}

/**
 * `wait`: from the newest event it answers to its start. `admission`: for a place among a provider's calls, for budgets
 * and for records of answers. `stream`: from the first token to the last.
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

/** What rises and falls. */
export interface Levels {
  /** Actors that this process holds. */
  leases_held: None;
}

export const NO_METRICS: Metrics = { count: () => {}, time: () => {}, change: () => {} };
