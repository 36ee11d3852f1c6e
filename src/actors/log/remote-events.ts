import type { Event } from '../../events/index.ts';
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
 *  V3  A lost notice loses no events for a reader that follows the log: the next notice covers them.
 */
export function createRemoteEvents(deps: {
  store: Pick<Store, 'read'>;
  notify: (log: ConversationKey, event: Event) => void;
  isWatched: () => boolean;
  onWarning: (error: unknown, where: string) => void;
}) {
  /** Least recently used first. */
  const places = new Map<string, Place>();

  function placeOf({ tenant, conversation }: ConversationKey, from: number): Place {
    const key = `${tenant}/${conversation}`;
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

  return {
    /** Records an event that was appended here, of which watchers are notified already. */
    own(log: ConversationKey, { seq }: Event): void {
      note(placeOf(log, seq - 1), seq);
    },
    async hear({ tenant, conversation, after, head }: Appended): Promise<void> {
      const log = { tenant, conversation };
      const place = placeOf(log, after);
      if (!deps.isWatched()) return skipTo(place, head);
      place.wanted = Math.max(place.wanted, head);
      if (!place.reading) await readUp(log, place);
    },
  };
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
