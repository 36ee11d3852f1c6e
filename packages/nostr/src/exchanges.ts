import { LRUCache } from 'lru-cache';
import type { Clock } from './troupe.ts';

/** A longer pause ends an exchange. Models answer within seconds; people take longer. */
export const PAUSE_MS = 60_000;
const MAX_CONVERSATIONS = 10_000;
/** Authors counted in one conversation. One more resets the counts. */
const MAX_AUTHORS = 100;

export interface Answer {
  conversation: string;
  pubkey: string;
  /** Id of the event. A retried event counts once. */
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
 * Counts how often an author and our agents answer each other without a pause. The limit on hops cannot stop two
 * installations that answer each other forever, since each incoming event counts as a person's.
 *  E1  An author who speaks after a pause, or does not answer us, resets the counts of the whole conversation.
 *  E2  Pauses are measured by arrival in this process: an author chooses the time in an event.
 */
export class Exchanges {
  readonly #most: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #conversations = new LRUCache<string, Map<string, Exchange>>({ max: MAX_CONVERSATIONS });

  constructor(most: number, clock: Pick<Clock, 'monotonic'>) {
    this.#most = most;
    this.#clock = clock;
  }

  /** The number of answers so far if it exceeds the limit, else null. */
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
