import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import type { TenantId } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';

/**
 * Values that many change at once, each under a key of the store.
 *
 * Owns what was last seen of each, and who waits. Does not own the truth: that is in the store, and a change counts when
 * the store has taken it over exactly what it was worked out from.
 *  G1  One compare-and-set per key at a time in this process, with all that wait for it: a hundred cost few writes.
 *  G2  A change that alters nothing is answered only from what was read since its batch began.
 *  G3  If a promise rejects, the change may have been made or not.
 */
export interface Entries<S> {
  /** `apply` may be called several times, and returns the state it was given where it alters nothing. */
  change<R>(tenant: TenantId, key: string, apply: (state: S) => { state: S; result: R }): Promise<R>;
  /** As it is in the store. */
  look(tenant: TenantId, key: string): Promise<S>;
}

export interface EntriesOptions<S> {
  store: Pick<Store, 'get' | 'compareAndSet'>;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  /** Of null, where nothing was ever stored. May throw. */
  parse: (text: string | null, key: string) => S;
  /** Another process was faster. */
  onLost: () => void;
}

/** Registers in memory; of those that nobody waits for, the one used least recently goes first. */
const MAX_PAGES = 1_000;
const MAX_ROUNDS = 20;
const MAX_PAUSE_MS = 200;

interface Waiting<S> {
  apply: (state: S) => { state: S; result: unknown };
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

interface Page<S> {
  tenant: TenantId;
  key: string;
  seen: { text: string | null; state: S } | null;
  waiting: Waiting<S>[];
  working: boolean;
}

export function createEntries<S>({ store, clock, random, parse, onLost }: EntriesOptions<S>): Entries<S> {
  const pages = new Map<string, Page<S>>();

  function pageOf(tenant: TenantId, key: string): Page<S> {
    const id = `${tenant} ${key}`;
    const page = pages.get(id) ?? { tenant, key, seen: null, waiting: [], working: false };
    // A Map keeps the order in which its keys were set.
    pages.delete(id);
    pages.set(id, page);
    if (pages.size > MAX_PAGES) forgetOne();
    return page;
  }

  function forgetOne(): void {
    for (const [id, { working, waiting }] of pages) {
      if (working || waiting.length > 0) continue;
      pages.delete(id);
      return;
    }
  }

  async function work(page: Page<S>): Promise<void> {
    page.working = true;
    // Whoever asks in the same moment comes along.
    await Promise.resolve();
    while (page.waiting.length > 0) {
      const batch: Waiting<S>[] = [];
      try {
        const results = await applyToolRequest(page, batch);
        for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
      } catch (error) {
        page.seen = null;
        for (const { reject } of batch) reject(error);
      }
    }
    page.working = false;
  }

  async function applyToolRequest(page: Page<S>, batch: Waiting<S>[]): Promise<unknown[]> {
    const { tenant, key } = page;
    let isFresh = false;
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      batch.push(...page.waiting.splice(0));
      if (!page.seen) {
        page.seen = see(await store.get(tenant, key), key);
        isFresh = true;
      }
      const { text, state } = page.seen;
      let next = state;
      const results = batch.map(({ apply }) => {
        const change = apply(next);
        next = change.state;
        return change.result;
      });
      if (next === state && isFresh) return results;
      if (next === state) {
        page.seen = null;
        continue;
      }
      const written = JSON.stringify(next);
      const stored = await store.compareAndSet(tenant, key, text, written);
      if (stored === written) {
        page.seen = { text: written, state: next };
        return results;
      }
      onLost();
      page.seen = see(stored, key);
      isFresh = true;
      await clock.sleep(random() * Math.min(MAX_PAUSE_MS, 2 ** round));
    }
    throw new TroupeError('store_unavailable', `${key} changes faster than it can be written; try again`);
  }

  function see(text: string | null, key: string): { text: string | null; state: S } {
    return { text, state: parse(text, key) };
  }

  return {
    change: (tenant, key, apply) =>
      new Promise((resolve, reject) => {
        const page = pageOf(tenant, key);
        page.waiting.push({ apply, resolve: resolve as (result: unknown) => void, reject });
        if (!page.working) void work(page);
      }),
    look: async (tenant, key) => parse(await store.get(tenant, key), key),
  };
}
