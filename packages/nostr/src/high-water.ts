import { createHash } from 'node:crypto';
import { type KeyValue, updateEntry } from './troupe.ts';

/** A short, stable name of a relay. Names of entries, claims and followers contain it. */
export function hashOfUrl(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 16);
}

/**
 * The time, in seconds since the epoch, up to which everything that a relay had for us is in the log.
 *  H1  It never moves back, and is never ahead of our own clock: an event from the future does not move it beyond now.
 *  H2  It stays before every event that is still being handled.
 */
export class HighWater {
  readonly #keyValue: Pick<KeyValue, 'get' | 'compareAndSet'>;
  readonly #key: string;
  readonly #pending = new Map<number, number>();
  #handled: number | null = null;
  #saved: number | null = null;

  constructor(keyValue: Pick<KeyValue, 'get' | 'compareAndSet'>, url: string) {
    this.#keyValue = keyValue;
    this.#key = `nostr/mark/${hashOfUrl(url)}`;
  }

  /** Time at which any process first set up this relay, seconds. Without a mark, events since then are requested. */
  async firstSetUp(nowSeconds: number): Promise<number> {
    const since = await this.#keyValue.compareAndSet(`${this.#key}/since`, null, String(nowSeconds));
    return parseMark(since) ?? nowSeconds;
  }

  /** Returns null if no event was ever handled. */
  async load(): Promise<number | null> {
    this.#saved = parseMark(await this.#keyValue.get(this.#key));
    this.#handled = Math.max(this.#saved ?? 0, this.#handled ?? 0) || null;
    return this.#handled;
  }

  /** An event of `createdAt` is pending until the returned function is called. */
  begin(createdAt: number): () => void {
    this.#pending.set(createdAt, (this.#pending.get(createdAt) ?? 0) + 1);
    return () => {
      const left = (this.#pending.get(createdAt) ?? 1) - 1;
      if (left > 0) this.#pending.set(createdAt, left);
      else this.#pending.delete(createdAt);
    };
  }

  /** Everything before `seconds` has been handled or is pending. */
  reach(seconds: number, nowSeconds: number): void {
    this.#handled = Math.max(this.#handled ?? 0, Math.min(seconds, nowSeconds));
  }

  get value(): number | null {
    if (this.#handled === null) return null;
    let value = this.#handled;
    for (const createdAt of this.#pending.keys()) value = Math.min(value, createdAt - 1);
    return Math.max(value, this.#saved ?? 0);
  }

  async save(): Promise<void> {
    const { value } = this;
    if (value === null || value === this.#saved) return;
    this.#saved = await updateEntry(this.#keyValue, this.#key, parseMark, (stored) =>
      stored !== null && stored >= value ? null : value,
    );
  }
}

function parseMark(text: string | null): number | null {
  const value = text === null ? null : Number(text);
  return Number.isSafeInteger(value) ? value : null;
}
