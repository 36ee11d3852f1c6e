const MAX_SIZE = 2_000;
const MAX_CHARS = 16_777_216;

/**
 * What a relay had before we asked, newest first as relays give it, until it is brought in oldest first. Nothing of it is
 * verified: an id or a time that is not true changes the order, and what is asked for next, and no more.
 */
export class Backlog {
  /** Everything after it is live. */
  isOver = false;
  #waiting: { raw: unknown; at: number }[] = [];
  readonly #ids = new Set<string>();
  #chars = 0;
  #oldest = Number.MAX_SAFE_INTEGER;

  get size(): number {
    return this.#waiting.length;
  }

  /** Seconds; of all that was ever added. */
  get oldest(): number {
    return this.#oldest;
  }

  /** No more should wait. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_SIZE || this.#chars >= MAX_CHARS;
  }

  /** Whether it is new. */
  add(raw: unknown): void {
    this.#add(raw);
  }

  /** A page of what is older; whether there may be more. */
  addPage(page: readonly unknown[]): boolean {
    const before = this.#oldest;
    const added = page.filter((raw) => this.#add(raw)).length;
    if (added > 0) return true;
    // A page of nothing new that is all of one second: what that second has beyond it cannot be asked for.
    if (page.length === 0 || this.#oldest < before) return false;
    this.#oldest -= 1;
    return page.length > 1;
  }

  /** All that waits, oldest first. */
  take(): unknown[] {
    const taken = this.#waiting.toSorted((a, b) => a.at - b.at);
    this.#waiting = [];
    this.#chars = 0;
    return taken.map(({ raw }) => raw);
  }

  #add(raw: unknown): boolean {
    const { id, created_at, content } = (raw ?? {}) as Record<string, unknown>;
    const isDated = typeof created_at === 'number' && Number.isSafeInteger(created_at) && created_at >= 0;
    if (typeof id === 'string') {
      if (this.#ids.has(id)) return false;
      this.#ids.add(id.slice(0, 64));
    }
    this.#chars += typeof content === 'string' ? content.length : 0;
    this.#waiting.push({ raw, at: isDated ? created_at : 0 });
    if (isDated) this.#oldest = Math.min(this.#oldest, created_at);
    return typeof id === 'string';
  }
}
