import type { Clock } from './troupe.ts';

/** A bounded map. The key set or read least recently is dropped first. */
export class RecentKeys<V> {
  readonly #values = new Map<string, V>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string): V | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.#max) return;
    const [oldest] = this.#values.keys();
    if (oldest !== undefined) this.#values.delete(oldest);
  }
}

/** A longer pause ends an exchange. Models answer within seconds; people take longer. */
export const PAUSE_MS = 60_000;
const MAX_CONVERSATIONS = 10_000;
/** Authors counted in one conversation. Beyond this number counting starts again. */
const MAX_AUTHORS = 100;

export interface Answer {
  conversation: string;
  pubkey: string;
  /** Id of the event. An event that is tried again counts once. */
  id: string;
  /** True if it answers a message of one of our agents. */
  isToUs: boolean;
}

interface Exchange {
  count: number;
  at: number;
  id: string;
}

/**
 * Counts how often an author and our agents answered each other without a pause. Each incoming event counts as a person's,
 * so the limit on hops does not apply: two installations would answer each other for ever.
 *  E1  An author who speaks after a pause, or does not answer us, resets the counts of the whole conversation.
 *  E2  Pauses are measured by arrival in this process: an author can put any time into an event.
 */
export class Exchanges {
  readonly #most: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #conversations = new RecentKeys<Map<string, Exchange>>(MAX_CONVERSATIONS);

  constructor(most: number, clock: Pick<Clock, 'monotonic'>) {
    this.#most = most;
    this.#clock = clock;
  }

  /** The number of answers, this one included, if it exceeds the limit; else null. */
  tooMany({ conversation, pubkey, id, isToUs }: Answer): number | null {
    const at = this.#clock.monotonic();
    const authors = this.#conversations.get(conversation) ?? new Map<string, Exchange>();
    const before = authors.get(pubkey);
    if (before?.id !== id) {
      const isAfterPause = before !== undefined && at - before.at > PAUSE_MS;
      if (!isToUs || isAfterPause || authors.size >= MAX_AUTHORS) authors.clear();
      const count = isToUs ? (authors.get(pubkey)?.count ?? 0) + 1 : 0;
      authors.set(pubkey, { count, at, id });
      this.#conversations.set(conversation, authors);
    }
    const { count } = authors.get(pubkey) ?? { count: 0 };
    return count > this.#most ? count : null;
  }
}
