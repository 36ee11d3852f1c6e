import { computed, signal } from '@preact/signals';
import type { Event } from '../../../../src/events/index.ts';
import { addTimes, emptyTimes, type TimePage } from '../../../../src/library/projection/time-page.ts';
import { api } from '../api.ts';
import { onEvents } from '../live.ts';
import { head } from '../selection.ts';
import { addPage, type LogTimes, newestPages, noTimes } from './log-times.ts';
import { type ThreadTimes, threadTimes } from './spans.ts';

/**
 * The loaded times of the conversation's log: first the newest events, older ones when they are viewed.
 *  T1  The pages follow each other without a gap, up to the last event.
 *  T2  `times` is changed in place, and `version` then increases.
 *  T3  While only the newest events are viewed, memory does not grow: the oldest pages are dropped, and can be loaded again.
 */
interface Loaded {
  conversation: string;
  pages: TimePage[];
  times: LogTimes;
  /** Events that arrived while a page was being requested. */
  waiting: Event[];
  isAsking: boolean;
  wantsAll: boolean;
  isAtNewest: () => boolean;
}

const PAGE_EVENTS = 20_000;
/** Number of live events that form a page. */
const LIVE_PAGE_EVENTS = 5_000;
/** Least number of events that are kept. */
const MIN_EVENTS = 10_000;

const loaded = signal<Loaded | null>(null);
const version = signal(0);

export const logTimes = computed(() => {
  void version.value;
  return { times: loaded.value?.times ?? NONE };
});
const NONE = noTimes();

/** Whether there are older events to request. */
export function hasOlder(): boolean {
  return (loaded.peek()?.times.first ?? 1) > 1;
}

/**
 * Loads the newest times of a conversation and follows it. `isAtNewest`: whether only the newest events are viewed. Returns a
 * function that stops this.
 */
export function openTimes(conversation: string, isAtNewest: () => boolean): () => void {
  const mine: Loaded = {
    conversation,
    pages: [],
    times: noTimes(),
    waiting: [],
    isAsking: false,
    wantsAll: false,
    isAtNewest,
  };
  loaded.value = mine;
  threads.value = new Map();
  asked.clear();
  void ask(mine, Math.max(0, head.peek() - PAGE_EVENTS));
  const stop = onEvents((events) => {
    if (mine.isAsking) mine.waiting.push(...events);
    else append(mine, events);
  });
  return () => {
    stop();
    if (loaded.peek() === mine) loaded.value = null;
  };
}

/** Loads the events before the first loaded one: a page of them, or all. */
export function loadOlder({ all = false } = {}): void {
  const mine = loaded.peek();
  if (!mine) return;
  mine.wantsAll ||= all;
  if (mine.isAsking || mine.times.first <= 1) return;
  void ask(mine, Math.max(0, mine.times.first - 1 - PAGE_EVENTS)).then(() => {
    if (mine.wantsAll && loaded.peek() === mine) loadOlder();
  });
}

async function ask(mine: Loaded, after: number): Promise<void> {
  mine.isAsking = true;
  try {
    const pages: TimePage[] = [];
    const end = mine.pages[0]?.first ?? Number.POSITIVE_INFINITY;
    for (let from: number | null = after; from !== null && from + 1 < end;) {
      const limit = Math.min(PAGE_EVENTS, end - 1 - from);
      const { page, next } = await api.times(mine.conversation, { after: from, limit });
      if (page.ms.length > 0) pages.push(page);
      from = next;
    }
    if (loaded.peek() !== mine) return;
    mine.pages = [...pages, ...mine.pages];
    rebuild(mine);
  } catch {
    mine.wantsAll = false;
    // The turns of the projection are drawn anyway, and a later view requests again.
  } finally {
    mine.isAsking = false;
  }
  append(mine, mine.waiting.splice(0));
  version.value += 1;
}

function append(mine: Loaded, events: readonly Event[]): void {
  const last = mine.times.first + mine.times.at.length - 1;
  const fresh = events.filter(({ seq }) => seq > last);
  // After a failed request the next page would leave a gap.
  if (fresh.length === 0 || (mine.pages.length > 0 && fresh[0]?.seq !== last + 1)) return;
  const page = emptyTimes();
  addTimes(page, fresh, { parts: false });
  addPage(mine.times, page);
  const newest = mine.pages.at(-1);
  if (newest && newest.ms.length < LIVE_PAGE_EVENTS) addTimes(newest, fresh, { parts: false });
  else {
    mine.pages.push(page);
    forget(mine);
  }
  version.value += 1;
}

/** Drops the oldest pages, unless somebody views them. */
function forget(mine: Loaded): void {
  if (mine.wantsAll || !mine.isAtNewest()) return;
  const kept = newestPages(mine.pages, MIN_EVENTS);
  if (kept.length === mine.pages.length) return;
  mine.pages = kept;
  rebuild(mine);
}

function rebuild(mine: Loaded): void {
  mine.times = noTimes();
  for (const page of mine.pages) addPage(mine.times, page);
}

/** The time of an event; null if it is not loaded. */
export function timeOfEvent(seq: number): number | null {
  const { times } = logTimes.peek();
  return times.at[seq - times.first] ?? null;
}

/** What is known of the threads of delegated tasks, by conversation. */
export const threads = signal<ReadonlyMap<string, ThreadTimes>>(new Map());
const asked = new Map<string, number>();
const FRESH_MS = 5_000;
const MAX_THREADS = 40;
const THREAD_EVENTS = 2_000;

/** Loads the turns of a thread. Repeats this from time to time while its task is open. */
export function needThread(thread: string, isOpen: boolean): void {
  const before = asked.get(thread);
  const isKnown = before !== undefined && (!isOpen || Date.now() - before < FRESH_MS);
  if (isKnown || (before === undefined && asked.size >= MAX_THREADS)) return;
  asked.set(thread, isOpen ? Date.now() : Number.POSITIVE_INFINITY);
  const of = loaded.peek();
  api.times(thread, { limit: THREAD_EVENTS, parts: 'true' }).then(
    ({ page }) => {
      if (loaded.peek() !== of) return;
      const times = noTimes();
      addPage(times, page);
      const now = times.at.at(-1) ?? 0;
      threads.value = new Map(threads.peek()).set(thread, threadTimes(times, thread, now));
    },
    () => undefined, // the thread is not shown; opening it tells why
  );
}
