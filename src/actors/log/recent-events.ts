import { conversationKey, type Event } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';

/**
 * The newest events that this process appended to busy conversations: a turn mostly reads what was just written. Other
 * processes may have appended later events, but what is returned has no gaps.
 */
export interface RecentEvents {
  add(log: ConversationKey, event: Event, now: number): void;
  /** Forgets conversations without new events since `before` (ms). */
  trim(before: number): void;
  forget(log: ConversationKey): void;
  /** The known events after `after`, without gaps. Null if earlier ones would be needed than are kept. */
  after(log: ConversationKey, after: number): readonly Event[] | null;
}

/** Most events kept per conversation, and in all. */
const KEPT = 16_384;
const KEPT_IN_ALL = 32_768;

export function createRecentEvents(): RecentEvents {
  /** Least recently extended first. */
  const tails = new Map<string, Tail>();
  let total = 0;

  function forget(): void {
    for (const key of tails.keys()) {
      if (total <= KEPT_IN_ALL) return;
      drop(key);
    }
  }

  function drop(key: string): void {
    total -= tails.get(key)?.events.length ?? 0;
    tails.delete(key);
  }

  function cut(tail: Event[], keep: number): void {
    total -= tail.splice(0, tail.length - keep).length;
  }

  return {
    add(log, event, now) {
      const key = conversationKey(log);
      const tail = tails.get(key) ?? { events: [], addedAt: now };
      const last = tail.events.at(-1);
      if (last && event.seq <= last.seq) return;
      if (last && event.seq !== last.seq + 1) cut(tail.events, 0);
      tail.events.push(event);
      tail.addedAt = now;
      total += 1;
      if (tail.events.length > KEPT) cut(tail.events, KEPT / 2);
      tails.delete(key);
      tails.set(key, tail);
      if (total > KEPT_IN_ALL) forget();
    },
    trim(before) {
      for (const [key, { addedAt }] of tails) {
        if (addedAt >= before) return;
        drop(key);
      }
    },
    forget: (log) => drop(conversationKey(log)),
    after(log, after) {
      const events = tails.get(conversationKey(log))?.events;
      const first = events?.[0];
      if (!events || !first || after < first.seq - 1) return null;
      return events.slice(after - first.seq + 1);
    },
  };
}

interface Tail {
  events: Event[];
  addedAt: number;
}
