import type { ErrorCode } from './errors.ts';
import type { EventKind, Guard } from './events/index.ts';

/**
 * What a process tells its operator in numbers. A closed list: a name that is not here cannot be counted.
 *  M1  Methods never wait and never throw.
 *  M2  Labels take few values, known beforehand: never an id of a tenant, conversation, agent, turn or event.
 *  M3  Times are given in milliseconds; whoever shows them converts.
 */
export interface Metrics {
  count<N extends keyof Counters>(name: N, labels: Counters[N], by?: number): void;
  time<N extends keyof Timers>(name: N, labels: Timers[N], ms: number): void;
}

type None = Record<never, never>;
type Provided = { provider: string };

/** What only rises. */
export interface Counters {
  events_appended: None;
  /** Another writer had taken the seq first. */
  append_retries: None;
  turns: { outcome: 'done' | 'failed' | 'aborted' };
  model_calls: Provided & { outcome: 'answered' | 'aborted' | ErrorCode };
  tokens: Provided & { kind: 'input' | 'output' | 'cache_read' | 'cache_write' | 'reasoning' };
  tool_calls: { outcome: 'done' | 'failed' | 'lost' | 'waiting' };
  /** Events for the logs of others that came after another with the same id: ends of tasks that had ended. */
  posts_too_late: { kind: EventKind };
  /** What was stopped, by guard. */
  guards: { guard: Guard };
  store_errors: { code: ErrorCode };
  /** Wakes that could not be given to the queue; the sweeper makes up for them. */
  queue_errors: { code: ErrorCode };
  /** Jobs that are not ours or not well-formed. */
  wakes_ignored: None;
  leases_lost: None;
  sweeps: None;
  /** Actors that a sweep found with work and woke. */
  sweep_found: None;
  /** Model calls that were not made. */
  budget_refused: { scope: 'tenant' | 'conversation' | 'agent' };
  /** Another process had written the account first. */
  budget_retries: None;
  /** Actors set aside: they take no turns until somebody resumes them. */
  actors_failed: { code: ErrorCode };
}

/** How long things took. */
export interface Timers {
  /** From the wake to the start of what it asked for. */
  wake_wait: None;
  activation: { outcome: 'done' | 'busy' | 'failed' };
  model_call: Provided;
}

export const NO_METRICS: Metrics = { count: () => {}, time: () => {} };
