import { conversationKey, type Event } from '../../events/index.ts';
import { type ConversationKey, type LogPage, type Store, PAGE_BYTES } from '../../store/store.ts';
import type { Clock } from '../../base/clock.ts';
import { slicesOf } from '../../base/slices.ts';
import type { PageSource } from './read-log.ts';
import type { Notice } from '../../queue/broadcast.ts';

/**
 * The newest events that this process appended, because a turn mostly reads what was just written. Other processes may have
 * appended later events, but the returned events have no gaps.
 */
interface RecentEvents {
  add(log: ConversationKey, event: Event, now: number): void;
  /** Drops conversations without new events since `before`, ms since the epoch. */
  trim(before: number): void;
  forget(log: ConversationKey): void;
  /** The known events after `after`, without gaps. Null if the first of them are no longer kept. */
  after(log: ConversationKey, after: number): readonly Event[] | null;
}

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

/** Maximum events that a page takes from memory. For more the store is read, so that other work can run. */
const MOST_RECENT = 500;

/** Pages of logs, from memory or from the store. */
export function createLogPages(
  store: Pick<Store, 'readPage' | 'readById'>,
  recent: RecentEvents,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
): PageSource & Pick<RecentEvents, 'trim' | 'forget'> & { stored: PageSource } {
  const cache = createPageCache(clock);

  /** Whether a cached page is valid. Another process may have deleted the conversation and begun it again with the same ids. */
  async function isStill(log: ConversationKey, { events }: LogPage): Promise<boolean> {
    const last = events.at(-1)!;
    const there = await store.readById(log, last.id);
    return there?.seq === last.seq && there.at === last.at;
  }

  function forget(log: ConversationKey): void {
    recent.forget(log);
    cache.clear();
  }

  const stored: PageSource = {
    forget,
    async readPage(log, range) {
      if (range.upTo !== undefined) return store.readPage(log, range);
      const cached = cache.find(log, range.after);
      if (cached && (await isStill(log, cached))) {
        await slicesOf(clock).next();
        return cached;
      }
      const page = await store.readPage(log, range);
      cache.put(log, range.after, page);
      return page;
    },
  };
  return {
    stored,
    async readPage(log, range) {
      const known = range.upTo === undefined ? recent.after(log, range.after) : null;
      if (known === null || known.length === 0 || known.length > MOST_RECENT)
        return stored.readPage(log, range);
      return { events: known, isLast: true };
    },
    trim(before) {
      recent.trim(before);
      cache.trim();
    },
    forget,
  };
}

/** Maximum cached pages: 32 MiB, with pages of at most 512 KiB. */
const MOST_PAGES = 64;
/** Lifetime of a cached page, ms: about the duration of a first turn. */
const KEPT_MS = 5_000;

/**
 * A cache of the pages of one log that were read last. Participants, tasks and views are folds of the whole log, and the first
 * message in a process begins all three.
 */
function createPageCache(clock: Pick<Clock, 'monotonic'>) {
  let key = '';
  let until = 0;
  const pages = new Map<number, LogPage>();
  const keyOf = ({ tenant, conversation }: ConversationKey) => `${tenant}/${conversation}`;

  function trim(): void {
    if (clock.monotonic() > until) pages.clear();
  }

  return {
    trim,
    find(log: ConversationKey, after: number): LogPage | null {
      trim();
      return pages.size > 0 && keyOf(log) === key ? (pages.get(after) ?? null) : null;
    },
    put(log: ConversationKey, after: number, page: LogPage): void {
      // The last page is not cached, because it grows with the log.
      if (page.isLast) return;
      if (keyOf(log) !== key) pages.clear();
      key = keyOf(log);
      until = clock.monotonic() + KEPT_MS;
      // Of a longer log the first pages stay: every reader begins there.
      if (pages.size < MOST_PAGES) pages.set(after, page);
    },
    clear: () => pages.clear(),
  };
}

type Appended = Extract<Notice, { type: 'appended' }>;

/** Maximum conversations whose notified seq is kept. For others only the notice says which events are new. */
const REMEMBERED = 4_096;

/**
 * Notifies the watchers of this process of events that other processes appended. A notice names the range; the events
 * are read from the log.
 *  V1  Watchers get an event once, whether it was appended here or elsewhere, as far as notices arrive.
 *  V2  One read per conversation runs at a time. Notices that arrive meanwhile are merged into the next read.
 *  V3  While events are appended here, notices of others wait. Another process may find and answer an event before the store's
 *      answer arrives here, and watchers must get events in order.
 *  V4  A lost notice loses no events for a reader that follows the log, because the next notice covers them.
 */
export function createRemoteEvents(deps: {
  store: Pick<Store, 'read'>;
  notify: (log: ConversationKey, event: Event) => void;
  isWatched: () => boolean;
  onWarning: (error: unknown, where: string) => void;
}) {
  /** Notified seqs by conversation, the least recently used first. */
  const places = new Map<string, Place>();

  /** Conversations to which this process is appending, with the notices that arrived meanwhile (V3). */
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
    /** Records an event of this process, of which watchers are notified already. */
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
  /** Seq up to which watchers have been notified of all events. */
  notified: number;
  /** Later seqs of which watchers have already been notified. */
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
