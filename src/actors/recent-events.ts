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

/** Events kept per conversation, and conversations kept. */
const KEPT = 64;
const CONVERSATIONS = 1_024;

export function createRecentEvents(): RecentEvents {
  const tails = new Map<string, Event[]>();
  const keyOf = ({ tenant, conversation }: Log) => `${tenant}/${conversation}`;

  return {
    add(log, event) {
      const key = keyOf(log);
      const tail = tails.get(key) ?? [];
      const last = tail.at(-1);
      if (last && event.seq <= last.seq) return;
      if (last && event.seq !== last.seq + 1) tail.length = 0;
      tail.push(event);
      if (tail.length > 2 * KEPT) tail.splice(0, tail.length - KEPT);
      tails.delete(key);
      tails.set(key, tail);
      if (tails.size <= CONVERSATIONS) return;
      for (const oldest of tails.keys()) return void tails.delete(oldest);
    },
    after(log, after) {
      const tail = tails.get(keyOf(log));
      const first = tail?.[0];
      if (!tail || !first || after < first.seq - 1) return null;
      return tail.slice(after - first.seq + 1);
    },
  };
}
