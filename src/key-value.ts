/**
 * Small facts of one tenant, in the store, for parts that need nothing else of it. Keys are slugs, `/` and `:` allowed.
 */
export interface KeyValue {
  get(key: string): Promise<string | null>;
  /**
   * Writes `to` if nothing is there and `from` is null, or what is there is `from`. Returns what is stored afterwards:
   * `to`, or what somebody else has written.
   */
  compareAndSet(key: string, from: string | null, to: string): Promise<string>;
  /**
   * Takes a task that one process at a time should do, until `until`, ms; false if another has it. Nothing gives it back
   * or renews it: the time is its pace. Two that hold it at once must do no harm.
   */
  claim(task: string, lease: { owner: string; now: number; until: number }): Promise<boolean>;
}

const MAX_ROUNDS = 50;

/**
 * Changes a note that others change too. `apply` is given what is stored, may be called several times, and returns null
 * to leave it. Returns the state afterwards.
 */
export async function updateEntry<S>(
  notes: Pick<KeyValue, 'get' | 'compareAndSet'>,
  key: string,
  parse: (text: string | null) => S,
  apply: (state: S) => S | null,
): Promise<S> {
  let stored = await notes.get(key);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const state = parse(stored);
    const next = apply(state);
    if (next === null) return state;
    const text = JSON.stringify(next);
    if (text === stored) return next;
    const after = await notes.compareAndSet(key, stored, text);
    if (after === text) return next;
    stored = after;
  }
  throw new Error(`the note ${key} was changed by others ${MAX_ROUNDS} times in a row`);
}

/** Notes that are gone with the process: for tests, and for troupes in memory. */
export function memoryKeyValue(): KeyValue {
  const notes = new Map<string, string>();
  const claims = new Map<string, number>();
  return {
    get: async (key) => notes.get(key) ?? null,
    async compareAndSet(key, from, to) {
      const stored = notes.get(key) ?? null;
      if (stored === from) notes.set(key, to);
      return notes.get(key) ?? to;
    },
    async claim(task, { now, until }) {
      if ((claims.get(task) ?? 0) >= now) return false;
      claims.set(task, until);
      return true;
    },
  };
}
