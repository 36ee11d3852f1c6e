/**
 * Key-value entries of one tenant, in the store. Keys are slugs; `/` and `:` are allowed.
 */
export interface KeyValue {
  /** The value. Null: there is none. */
  get(key: string): Promise<string | null>;
  /**
   * Writes `to` if the stored value is `from`; null: there is no entry. Returns the value stored afterwards: `to`, or the
   * value of another writer.
   */
  compareAndSet(key: string, from: string | null, to: string): Promise<string>;
  /**
   * Claims a task for one process until `until`, ms. Returns false if another process holds it. A claim can neither be
   * renewed nor released. The task must tolerate two holders at once.
   */
  claim(task: string, lease: { owner: string; now: number; until: number }): Promise<boolean>;
}

const MAX_ROUNDS = 50;

/**
 * Changes an entry that others change, too. `apply` gets the stored state, may be called several times, and returns null to
 * change nothing. Returns the state afterwards.
 */
export async function updateEntry<S>(
  entries: Pick<KeyValue, 'get' | 'compareAndSet'>,
  key: string,
  parse: (text: string | null) => S,
  apply: (state: S) => S | null,
): Promise<S> {
  let stored = await entries.get(key);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const state = parse(stored);
    const next = apply(state);
    if (next === null) return state;
    const text = JSON.stringify(next);
    if (text === stored) return next;
    const after = await entries.compareAndSet(key, stored, text);
    if (after === text) return next;
    stored = after;
  }
  throw new Error(`the entry ${key} was changed by others ${MAX_ROUNDS} times in a row`);
}

/** Entries in memory, for tests. */
export function memoryKeyValue(): KeyValue {
  const entries = new Map<string, string>();
  const claims = new Map<string, number>();
  return {
    get: async (key) => entries.get(key) ?? null,
    async compareAndSet(key, from, to) {
      const stored = entries.get(key) ?? null;
      if (stored === from) entries.set(key, to);
      return entries.get(key) ?? to;
    },
    async claim(task, { now, until }) {
      if ((claims.get(task) ?? 0) >= now) return false;
      claims.set(task, until);
      return true;
    },
  };
}
