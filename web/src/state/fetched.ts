import { effect, type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { ApiError } from './api.ts';
import { onEvents } from './live.ts';
import { conversation } from './route.ts';

/** What was asked of the server: on its way, here, or refused in its words. */
export type Fetched<T> =
  | { state: 'loading' }
  | { state: 'there'; value: T }
  | { state: 'failed'; code: string; message: string };

interface Entry {
  content: Signal<Fetched<unknown>>;
  load: () => Promise<unknown>;
  /** The turn whose events make it old; `ANY` for those of everybody, null for what never changes. */
  of: string | null;
  users: number;
  isDue: boolean;
}

export const ANY = '*';
/** The least recently used goes first. */
const MAX_KEPT = 60;
/** Events come in bursts: a turn's end is five of them. */
const REFETCH_MS = 250;

/**
 * Answers about turns, kept while a conversation is open. A turn that has ended is never asked for again; one that runs
 * is, when events of it come, and what was there stays on the screen until then.
 */
const kept = new Map<string, Entry>();

export function useFetched<T>(key: string | null, of: string | null, load: () => Promise<T>): Fetched<T> {
  const entry = useMemo(() => (key === null ? null : entryOf(key, of, load)), [key]);
  useEffect(() => {
    if (!entry) return;
    entry.users += 1;
    return () => void (entry.users -= 1);
  }, [entry]);
  return (entry?.content.value ?? LOADING) as Fetched<T>;
}

const LOADING = { state: 'loading' } as const;

function entryOf(key: string, of: string | null, load: () => Promise<unknown>): Entry {
  const known = kept.get(key);
  const entry = known ?? { content: signal<Fetched<unknown>>(LOADING), load, of, users: 0, isDue: false };
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
    const message = error instanceof Error ? error.message : String(error);
    // A server that is away for a moment takes nothing from the screen.
    if (code === 'unreachable' && entry.content.peek().state === 'there') return;
    entry.content.value = { state: 'failed', code, message };
  }
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

// What happens elsewhere is not told here, so nothing of it is kept.
effect(() => {
  void conversation.value;
  kept.clear();
});
