import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { TenantId } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';

/**
 * Stored values that many callers change concurrently, one per key. Owns the last seen state of each value and the waiting
 * callers. The store decides: a change counts when compare-and-set has replaced exactly the state from which it was computed.
 *  G1  In this process one compare-and-set per key runs at a time, for all waiting callers, so a hundred need few writes.
 *  G2  A change that alters nothing is answered only by a state that was read after its batch began.
 *  G3  If a promise rejects, the change may or may not have been made.
 */
interface Entries<S> {
  /** Changes a value. `apply` may be called several times. To change nothing, it returns the given state. */
  change<R>(tenant: TenantId, key: string, apply: (state: S) => { state: S; result: R }): Promise<R>;
  look(tenant: TenantId, key: string): Promise<S>;
}

interface EntriesOptions<S> {
  store: Pick<Store, 'get' | 'compareAndSet'>;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  /** Parses a stored text; null if nothing was ever stored. May throw. */
  parse: (text: string | null, key: string) => S;
  /** Called when another process wrote first. */
  onLost: () => void;
}

/** Maximum entries in memory. The least recently used one without waiting callers is dropped first. */
const MAX_ENTRIES = 1_000;
const MAX_ROUNDS = 20;
const MAX_PAUSE_MS = 200;

interface Waiting<S> {
  apply: (state: S) => { state: S; result: unknown };
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

interface SharedEntry<S> {
  tenant: TenantId;
  key: string;
  seen: { text: string | null; state: S } | null;
  waiting: Waiting<S>[];
  working: boolean;
}

export function createEntries<S>({ store, clock, random, parse, onLost }: EntriesOptions<S>): Entries<S> {
  const entries = new Map<string, SharedEntry<S>>();

  function entryOf(tenant: TenantId, key: string): SharedEntry<S> {
    const id = `${tenant} ${key}`;
    const entry = entries.get(id) ?? { tenant, key, seen: null, waiting: [], working: false };
    // Deleted and set again, because a Map keeps the order in which its keys were set.
    entries.delete(id);
    entries.set(id, entry);
    if (entries.size > MAX_ENTRIES) dropOldest(entries);
    return entry;
  }

  async function work(entry: SharedEntry<S>): Promise<void> {
    entry.working = true;
    // Lets callers of the same tick join the batch.
    await Promise.resolve();
    while (entry.waiting.length > 0) {
      const batch: Waiting<S>[] = [];
      try {
        const results = await applyBatch(entry, batch);
        for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
      } catch (error) {
        entry.seen = null;
        for (const { reject } of batch) reject(error);
      }
    }
    entry.working = false;
  }

  async function applyBatch(entry: SharedEntry<S>, batch: Waiting<S>[]): Promise<unknown[]> {
    const { tenant, key } = entry;
    let isFresh = false;
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      batch.push(...entry.waiting.splice(0));
      if (!entry.seen) {
        entry.seen = parsed(await store.get(tenant, key), key);
        isFresh = true;
      }
      const { text, state } = entry.seen;
      const { next, results } = applyAll(batch, state);
      if (next === state && isFresh) return results;
      if (next === state) {
        entry.seen = null;
        continue;
      }
      const written = JSON.stringify(next);
      const stored = await store.compareAndSet(tenant, key, text, written);
      if (stored === written) {
        entry.seen = { text: written, state: next };
        return results;
      }
      onLost();
      entry.seen = parsed(stored, key);
      isFresh = true;
      await clock.sleep(random() * Math.min(MAX_PAUSE_MS, 2 ** round));
    }
    throw new TroupeError('store_unavailable', `${key} changes faster than it can be written; try again`);
  }

  function parsed(text: string | null, key: string): { text: string | null; state: S } {
    return { text, state: parse(text, key) };
  }

  return {
    change: (tenant, key, apply) =>
      new Promise((resolve, reject) => {
        const entry = entryOf(tenant, key);
        entry.waiting.push({ apply, resolve: resolve as (result: unknown) => void, reject });
        if (!entry.working) void work(entry);
      }),
    look: async (tenant, key) => parse(await store.get(tenant, key), key),
  };
}

function dropOldest(entries: Map<string, { working: boolean; waiting: readonly unknown[] }>): void {
  for (const [id, { working, waiting }] of entries) {
    if (working || waiting.length > 0) continue;
    entries.delete(id);
    return;
  }
}

function applyAll<S>(batch: readonly Waiting<S>[], state: S): { next: S; results: unknown[] } {
  let next = state;
  const results = batch.map(({ apply }) => {
    const change = apply(next);
    next = change.state;
    return change.result;
  });
  return { next, results };
}
