import type { Event } from '../../events/index.ts';

/** A receiver of the log's events, such as a webhook or a relay. */
export interface Follower {
  /** Unique within its tenant, and stable: `webhook/<id>`, `nostr/<hash of the relay's URL>`. Slug characters and `/`. */
  name: string;
  /** Whether it is to be told of an event. */
  wants(conversation: string): boolean;
  /** Events for which it returns false are skipped at almost no cost. Default: true. */
  cares?(event: Event): boolean;
  /** Events before this time, ms, are not delivered. */
  since: number;
  /**
   * Resolves when the event is done: sent, of no interest, or refused for good. If it throws, the follower pauses and
   * retries; a `RetryAfter` sets the pause. Called for several conversations at once, one event of each at a time.
   * `signal` aborts when the process cannot wait any longer.
   */
  deliver(event: Event, signal: AbortSignal): Promise<void>;
  /** Called after each counted failure of `deliver`. */
  onFailed?(status: FollowerStatus): void;
}

/** Where a follower stands. */
export interface FollowerStatus {
  /** Conversations with events to deliver, as far as this process knows. */
  behind: number;
  /** Failures in a row. */
  failures: number;
  /** The last failure. Null: none. */
  lastError: string | null;
  /** Time of the next attempt, ms. Null if nothing has failed. */
  retryAt: number | null;
}

/** Thrown by `deliver`: the next attempt comes after `ms`. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  /** The pause, ms. */
  readonly ms: number;

  constructor(ms: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.ms = ms;
  }
}

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 300_000;
/** The longest pause that a receiver can request. */
export const MAX_ASKED_MS = 3_600_000;

/** Pause after this many failures in a row, ms. Half of it is random: followers that failed together must not retry together. */
export function pauseAfter(error: unknown, failures: number, random: () => number): number {
  if (error instanceof RetryAfter) return Math.min(MAX_ASKED_MS, Math.max(FIRST_PAUSE_MS, error.ms));
  const half = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) / 2;
  return Math.round(half + random() * half);
}
