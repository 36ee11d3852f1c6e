import type { Clock } from '../clock.ts';
import type { KeyRecord } from './key-record.ts';

/** After this a key is looked up again: another process may have revoked it. */
const KEY_LIFE_MS = 2_000;
const MAX_KNOWN = 5_000;
const MAX_UNKNOWN = 5_000;

interface Entry {
  record: KeyRecord | null;
  at: number;
}

/**
 * Keys that were looked up lately. Owned by the one process, and shared by its key books and its authenticator.
 *  1. What a book of this process has written counts at once, also over a look-up that began before.
 *  2. Ids that nobody has are remembered apart, so that guesses push no key out.
 */
export class KeyCache {
  readonly #known = new Map<string, Entry>();
  readonly #unknown = new Map<string, Entry>();
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  async find(id: string, read: (id: string) => Promise<KeyRecord | null>): Promise<KeyRecord | null> {
    const before = this.#entry(id);
    if (before && this.#clock.monotonic() - before.at < KEY_LIFE_MS) return before.record;
    const at = this.#clock.monotonic();
    const record = await read(id);
    const now = this.#entry(id);
    if (now && now !== before) return now.record;
    this.#set(id, { record, at });
    return record;
  }

  /** What has just been written. */
  put(record: KeyRecord): void {
    this.#set(record.id, { record, at: this.#clock.monotonic() });
  }

  #entry(id: string): Entry | undefined {
    return this.#known.get(id) ?? this.#unknown.get(id);
  }

  #set(id: string, entry: Entry): void {
    this.#known.delete(id);
    this.#unknown.delete(id);
    const [entries, most] = entry.record ? [this.#known, MAX_KNOWN] : [this.#unknown, MAX_UNKNOWN];
    entries.set(id, entry);
    const [oldest] = entries.keys();
    if (entries.size > most && oldest !== undefined) entries.delete(oldest);
  }
}
