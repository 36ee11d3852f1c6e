import type { Event } from '../events/index.ts';
import type { Log } from '../store/store.ts';

/**
 * The newest events of busy conversations, as this process appended them: a turn mostly reads what was just written.
 * A hint about the head (others may have appended since), never about the middle: what it returns has no gaps.
 */
export interface RecentEvents {
  add(log: Log, event: Event): void;
  /** Everything known after `after`, without gaps; null if that reaches further back than what is kept. */
  after(log: Log, after: number): readonly Event[] | null;
}

/** Events kept per conversation at most, and over all conversations. */
const KEPT = 16_384;
const KEPT_IN_ALL = 32_768;

export function createRecentEvents(): RecentEvents {
  /** Least recently extended first. */
  const tails = new Map<string, Event[]>();
  let total = 0;
  const keyOf = ({ tenant, conversation }: Log) => `${tenant}/${conversation}`;

  function forget(): void {
    for (const [key, tail] of tails) {
      if (total <= KEPT_IN_ALL) return;
      tails.delete(key);
      total -= tail.length;
    }
  }

  function cut(tail: Event[], keep: number): void {
    total -= tail.splice(0, tail.length - keep).length;
  }

  return {
    add(log, event) {
      const key = keyOf(log);
      const tail = tails.get(key) ?? [];
      const last = tail.at(-1);
      if (last && event.seq <= last.seq) return;
      if (last && event.seq !== last.seq + 1) cut(tail, 0);
      tail.push(event);
      total += 1;
      if (tail.length > KEPT) cut(tail, KEPT / 2);
      tails.delete(key);
      tails.set(key, tail);
      forget();
    },
    after(log, after) {
      const tail = tails.get(keyOf(log));
      const first = tail?.[0];
      if (!tail || !first || after < first.seq - 1) return null;
      return tail.slice(after - first.seq + 1);
    },
  };
}
