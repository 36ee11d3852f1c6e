import { conversationKey, type Event } from '../../events/index.ts';
import type { Notice } from '../../queue/broadcast.ts';
import { type ConversationKey, PAGE_BYTES, type Store } from '../../store/store.ts';

type Appended = Extract<Notice, { type: 'appended' }>;

/** Most conversations whose place is kept. For others the notice alone says which events are new. */
const REMEMBERED = 4_096;

/**
 * Notifies the watchers of this process of events that other processes appended. A notice names the range; the events
 * are read from the log.
 *  V1  Watchers get an event once, whether it was appended here or elsewhere, as far as notices arrive.
 *  V2  One read per conversation at a time: notices that come meanwhile are merged into the next read.
 *  V3  While events are appended here, notices of others wait: another process may find and answer an event before the
 *      store's answer is back here, and watchers get events in order.
 *  V4  A lost notice loses no events for a reader that follows the log: the next notice covers them.
 */
export function createRemoteEvents(deps: {
  store: Pick<Store, 'read'>;
  notify: (log: ConversationKey, event: Event) => void;
  isWatched: () => boolean;
  onWarning: (error: unknown, where: string) => void;
}) {
  /** Least recently used first. */
  const places = new Map<string, Place>();

  /** Conversations to which events are being appended here, and what was heard of them meanwhile (V3). */
  const appending = new Map<string, { count: number; heard: Appended | null }>();

  function placeOf(key: string, from: number): Place {
    const place = places.get(key) ?? { notified: from, ahead: new Set(), wanted: 0, reading: false };
    places.delete(key);
    places.set(key, place);
    for (const [oldest, { reading }] of places) {
      if (places.size <= REMEMBERED) break;
      if (!reading) places.delete(oldest);
    }
    return place;
  }

  async function readUp(log: ConversationKey, place: Place): Promise<void> {
    place.reading = true;
    try {
      while (place.notified < place.wanted) {
        const range = { after: place.notified, upTo: place.wanted, maxBytes: PAGE_BYTES };
        const events = await deps.store.read(log, range);
        if (events.length === 0) return;
        for (const event of events) if (note(place, event.seq)) deps.notify(log, event);
      }
    } catch (error) {
      deps.onWarning(error, 'events of another process');
    } finally {
      place.reading = false;
    }
  }

  async function hear(notice: Appended): Promise<void> {
    const { tenant, conversation, after, head } = notice;
    const log = { tenant, conversation };
    const own = appending.get(conversationKey(log));
    if (own) {
      own.heard = merged(own.heard, notice);
      return;
    }
    const place = placeOf(conversationKey(log), after);
    if (!deps.isWatched()) return skipTo(place, head);
    place.wanted = Math.max(place.wanted, head);
    if (!place.reading) await readUp(log, place);
  }

  return {
    hear,
    /** Runs an append and the notification of its events. */
    async during<T>(log: ConversationKey, append: () => Promise<T>): Promise<T> {
      const key = conversationKey(log);
      const own = appending.get(key) ?? { count: 0, heard: null };
      appending.set(key, own);
      own.count += 1;
      try {
        return await append();
      } finally {
        own.count -= 1;
        if (own.count === 0) {
          appending.delete(key);
          if (own.heard) void hear(own.heard);
        }
      }
    },
    /** Records an event that was appended here, of which watchers are notified already. */
    own(log: ConversationKey, { seq }: Event): void {
      note(placeOf(conversationKey(log), seq - 1), seq);
    },
  };
}

function merged(before: Appended | null, notice: Appended): Appended {
  if (!before) return notice;
  const { after, head } = before;
  return { ...notice, after: Math.min(after, notice.after), head: Math.max(head, notice.head) };
}

interface Place {
  /** Watchers are notified of all events up to this seq. */
  notified: number;
  /** Later seqs of which they are notified too. */
  ahead: Set<number>;
  wanted: number;
  reading: boolean;
}

/** Skips events because there are no watchers. */
function skipTo(place: Place, head: number): void {
  place.notified = Math.max(place.notified, head);
  for (const seq of place.ahead) if (seq <= place.notified) place.ahead.delete(seq);
}

/** Records a seq. Returns true the first time. */
function note(place: Place, seq: number): boolean {
  if (seq <= place.notified || place.ahead.has(seq)) return false;
  place.ahead.add(seq);
  while (place.ahead.delete(place.notified + 1)) place.notified += 1;
  return true;
}
