import type { Event } from '../events/index.ts';

/** Somebody outside who is handed the log: a webhook, a relay. */
export interface Follower {
  /** Unique within its tenant, and stable: `webhook/<id>`, `nostr/<hash of the relay's URL>`. Slug characters and `/`. */
  name: string;
  wants(conversation: string): boolean;
  /** Events it does not care for are passed over, and cost next to nothing. By default it cares for all. */
  cares?(event: Event): boolean;
  /** Events before this time (ms) are not handed over. */
  since: number;
  /**
   * Resolves when the event need not be handed over again: sent, of no interest, or refused for good. Where it throws, all
   * of this follower waits, and it is tried again; a `RetryAfter` says how long. Called for several conversations at
   * once, for each one event after the other. `signal` aborts where the process cannot wait any longer.
   */
  deliver(event: Event, signal: AbortSignal): Promise<void>;
  /** Told after each failure of `deliver` that counts. */
  onFailed?(status: FollowerStatus): void;
}

export interface FollowerStatus {
  /** Conversations of which this process knows that something is still to be handed over. */
  behind: number;
  /** Failures in a row. */
  failures: number;
  lastError: string | null;
  /** When the next try is, ms; null where none is waited for. */
  retryAt: number | null;
}

/** Thrown by `deliver`: not before so many ms. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  readonly ms: number;

  constructor(ms: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.ms = ms;
  }
}

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 300_000;
/** What the other side asks for is kept to, within reason: no pause between two tries is longer. */
export const MAX_ASKED_MS = 3_600_000;

/** How long to wait after so many failures in a row, from 1. Half of it is random: many that failed together must not come back together. */
export function pauseAfter(error: unknown, failures: number, random: () => number): number {
  if (error instanceof RetryAfter) return Math.min(MAX_ASKED_MS, Math.max(FIRST_PAUSE_MS, error.ms));
  const half = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) / 2;
  return Math.round(half + random() * half);
}
