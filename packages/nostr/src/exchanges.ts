import type { Clock } from './troupe.ts';

/** A bounded map: the one set or read least recently is forgotten first. */
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

/** A longer pause ends an exchange. Models take seconds to answer, people who think take longer. */
export const PAUSE_MS = 60_000;
const MAX_CONVERSATIONS = 10_000;
/** In one conversation; beyond it counting begins anew. */
const MAX_AUTHORS = 100;

export interface Answer {
  conversation: string;
  pubkey: string;
  /** Of the event; one that is tried again counts once. */
  id: string;
  /** Whether it answers words of ours. */
  isToUs: boolean;
}

interface Exchange {
  count: number;
  at: number;
  id: string;
}

/**
 * How often somebody outside and our agents have answered each other without a pause. Every event from outside comes as a
 * person's, so that hops say nothing of it: two installations would go on for ever.
 *  E1  Who speaks again after a pause, or not to us, begins anew, and everybody else in the conversation with them.
 *  E2  Counted is in the time of arrival, by this process: what an event says of its time is its author's affair.
 */
export class Exchanges {
  readonly #most: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #conversations = new RecentKeys<Map<string, Exchange>>(MAX_CONVERSATIONS);

  constructor(most: number, clock: Pick<Clock, 'monotonic'>) {
    this.#most = most;
    this.#clock = clock;
  }

  /** How many there were, this one with them, where that is too many; else null. */
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
