import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { Event } from '../../../src/events/index.ts';
import { api } from './api.ts';
import { messageOf } from '../shared/format.ts';

/**
 * The part of a conversation that is on the screen, as events without gaps.
 *  W1  `events` are consecutive: each seq is its predecessor's plus one.
 *  W2  At most `MAX_EVENTS` are kept; the far end is dropped, and can be loaded again.
 *  W3  A window that reaches the end of the log stays there: live events are added, and events that came during a load are
 *      loaded as well.
 */
export interface ReadingWindow {
  readonly events: ReadonlySignal<readonly Event[]>;
  readonly problem: ReadonlySignal<string | null>;
  /** Whether there are events before the first one. */
  hasEarlier(): boolean;
  /** Whether there are events after the last one. */
  hasLater(): boolean;
  earlier(): Promise<void>;
  later(): Promise<void>;
  /** Shows an event with its surroundings, or for null the end of the conversation. */
  seek(seq: number | null): Promise<void>;
  /** Adds live events. `head`: last seq of the log. */
  arrived(events: readonly Event[], head: number): void;
}

const PAGE = 120;
const MAX_EVENTS = 1_200;
/** Number of events shown before the requested one. */
const BEFORE = 40;

interface Opening {
  /** The last seq that may be shown; null for the present, whose last seq is `head`. */
  end: number | null;
  head: number;
  /** The requested event; null for the end. */
  at: number | null;
  /** Events that the page already has; they are shown at once if they reach the end. */
  newest: readonly Event[];
}

export function openReading(conversation: string, { end, head, at, newest }: Opening): ReadingWindow {
  const isKnown = at === null && newest.at(-1)?.seq === Math.min(end ?? head, head);
  const events = signal<readonly Event[]>(isKnown ? newest : []);
  const problem = signal<string | null>(null);
  // An address may name a later moment than the log has.
  let last = Math.min(end ?? head, head);
  /** Whether the window reached the end of the log when it was loaded. */
  let isAtEnd = isKnown;

  const firstSeq = () => events.peek()[0]?.seq ?? 1;
  const lastSeq = () => events.peek().at(-1)?.seq ?? 0;

  const { load, loading } = oneAtATime(problem, () => {
    // Events may have come since the last read.
    if (isAtEnd && lastSeq() < last) void load(reachEnd);
  });
  const read = (after: number, upTo: number) => readEvents(conversation, after, upTo);

  /** Loads everything up to the end, including events that arrive meanwhile. */
  async function reachEnd(): Promise<void> {
    for (let before = -1; isAtEnd && lastSeq() < last && lastSeq() > before;) {
      before = lastSeq();
      const isFar = last - before > MAX_EVENTS;
      const found = await read(isFar ? last - PAGE : before, last);
      events.value = isFar ? found : [...events.peek(), ...found].slice(-MAX_EVENTS);
    }
    if (lastSeq() < last) isAtEnd = false;
  }

  const seek = async (seq: number | null) => {
    // Waits first, because a page that is already loading is not the requested one.
    await loading();
    await load(async () => {
      const target = Math.min(seq ?? last, last);
      const after = seq === null ? Math.max(0, last - PAGE) : Math.max(0, target - BEFORE);
      const upTo = Math.min(last, after + PAGE);
      isAtEnd = upTo === last;
      events.value = await read(after, upTo);
      await reachEnd();
    });
  };

  if (!isKnown) void seek(at);
  return {
    events,
    problem,
    hasEarlier: () => firstSeq() > 1,
    hasLater: () => lastSeq() < last,
    earlier: () =>
      load(async () => {
        const upTo = firstSeq() - 1;
        const found = await read(Math.max(0, upTo - PAGE), upTo);
        const all = [...found, ...events.peek()];
        if (all.length > MAX_EVENTS) isAtEnd = false;
        events.value = all.slice(0, MAX_EVENTS);
        await reachEnd();
      }),
    later: () =>
      load(async () => {
        const upTo = Math.min(last, lastSeq() + PAGE);
        isAtEnd = upTo === last;
        const found = await read(lastSeq(), upTo);
        events.value = [...events.peek(), ...found].slice(-MAX_EVENTS);
        await reachEnd();
      }),
    seek,
    arrived(fresh, newHead) {
      if (end !== null) return;
      last = Math.max(last, newHead);
      // A running load continues to the new end.
      if (!isAtEnd || loading() !== null) return;
      const next = fresh.filter(({ seq }) => seq > lastSeq());
      if (next[0]?.seq === lastSeq() + 1) events.value = [...events.peek(), ...next].slice(-MAX_EVENTS);
      if (lastSeq() < last) void load(reachEnd);
    },
  };
}

/** Reads page by page, because the server limits a page by its size. */
async function readEvents(conversation: string, after: number, upTo: number): Promise<Event[]> {
  const found: Event[] = [];
  for (let from = after; from < upTo;) {
    const page = await api.events(conversation, { after: from, limit: Math.min(MAX_EVENTS, upTo - from) });
    if (page.events.length === 0) break;
    found.push(...page.events);
    from = page.events.at(-1)?.seq ?? upTo;
  }
  return found;
}

/** Runs one load at a time, because a second one would request the same events. `onDone` is called after each success. */
function oneAtATime(problem: Signal<string | null>, onDone: () => void) {
  let loading: Promise<void> | null = null;
  function load(work: () => Promise<void>): Promise<void> {
    loading ??= work()
      .then(
        () => void (problem.value = null),
        (error: unknown) => void (problem.value = messageOf(error)),
      )
      .finally(() => {
        loading = null;
        if (problem.peek() === null) onDone();
      });
    return loading;
  }
  return { load, loading: () => loading };
}
