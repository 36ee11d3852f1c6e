import { effect, type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { ApiError } from './api.ts';
import { onEvents, readings } from './live.ts';
import { conversation } from './route.ts';
import { messageOf } from '../shared/format.ts';

/** A request to the server: pending, answered, or refused in the server's words. */
export type Fetched<T> =
  | { state: 'loading' }
  | { state: 'there'; value: T }
  | { state: 'failed'; code: string; message: string };

interface Entry {
  content: Signal<Fetched<unknown>>;
  load: () => Promise<unknown>;
  /** The turn whose events make the answer stale. `ANY`: events of any turn. Null: the answer never changes. */
  of: string | null;
  /** Whether a refused answer may still become available without an event that reports it. */
  mayCome: () => boolean;
  users: number;
  isDue: boolean;
}

export const ANY = '*';
/** The least recently used entry is evicted first. */
const MAX_KEPT = 60;
/** Events come in bursts: the end of a turn is five of them. In ms. */
const REFETCH_MS = 250;
/** Pause before an answer that may still come is requested again, ms. */
const AGAIN_MS = 1_000;

/**
 * Answers about turns, kept while a conversation is open. An ended turn is never fetched again. A running one is fetched when
 * its events arrive, and the old answer stays visible until then.
 */
const kept = new Map<string, Entry>();

export function useFetched<T>(
  key: string | null,
  of: string | null,
  load: () => Promise<T>,
  mayCome: () => boolean = NEVER,
): Fetched<T> {
  const entry = useMemo(() => (key === null ? null : entryOf(key, { of, load, mayCome })), [key]);
  useEffect(() => {
    if (!entry) return;
    entry.users += 1;
    return () => void (entry.users -= 1);
  }, [entry]);
  return (entry?.content.value ?? LOADING) as Fetched<T>;
}

const LOADING = { state: 'loading' } as const;
const NEVER = () => false;

function entryOf(key: string, about: Pick<Entry, 'of' | 'load' | 'mayCome'>): Entry {
  const known = kept.get(key);
  const entry = known ?? { content: signal<Fetched<unknown>>(LOADING), ...about, users: 0, isDue: false };
  kept.delete(key);
  kept.set(key, entry);
  for (const [oldest, { users }] of kept) {
    if (kept.size <= MAX_KEPT) break;
    if (users === 0 && oldest !== key) kept.delete(oldest);
  }
  if (!known) void fetchInto(entry);
  return entry;
}

async function fetchInto(entry: Entry): Promise<void> {
  try {
    entry.content.value = { state: 'there', value: await entry.load() };
  } catch (error) {
    const code = error instanceof ApiError ? error.code : 'unreachable';
    const message = messageOf(error);
    // A brief outage of the server removes nothing from the screen.
    if (code === 'unreachable' && entry.content.peek().state === 'there') return;
    entry.content.value = { state: 'failed', code, message };
    if (entry.users > 0 && entry.mayCome()) setTimeout(() => void fetchInto(entry), AGAIN_MS);
  }
}

/** Fetches again, after something that no event of the open conversation reports. The old answer stays visible until then. */
export function refetch(key: string): void {
  const entry = kept.get(key);
  if (entry) void fetchInto(entry);
}

onEvents((events) => {
  const turns = new Set<string | undefined>(events.map(({ turn }) => turn));
  for (const [key, entry] of kept) {
    if (entry.of === null || !(entry.of === ANY || turns.has(entry.of))) continue;
    if (entry.users === 0) kept.delete(key);
    else if (!entry.isDue) {
      entry.isDue = true;
      setTimeout(() => {
        entry.isDue = false;
        void fetchInto(entry);
      }, REFETCH_MS);
    }
  }
});

// Other conversations send no events to this page, so their answers are not kept.
effect(() => {
  void conversation.value;
  void readings.value;
  kept.clear();
});
