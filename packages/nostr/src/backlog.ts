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
  #isBarren = false;
  #oldest = Infinity;

  /** What is to be asked for next: the newest, then what is as old as the oldest that was found. */
  before(): { until?: number } {
    return this.#oldest === Infinity ? {} : { until: this.#oldest };
  }

  /** No more should wait. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_SIZE || this.#chars >= MAX_CHARS;
  }

  add(raw: unknown): void {
    this.#add(raw);
  }

  /** A page of what is older; whether there may be more, and how many of it are of another time than was asked for. */
  addPage(page: readonly unknown[], since: number): { isMore: boolean; strays: number } {
    const until = this.#oldest;
    const inside = page.filter((raw) => {
      const at = timeOf(raw);
      return at === null || (at >= since && at <= until);
    });
    const added = inside.filter((raw) => this.#add(raw)).length;
    for (const raw of inside) this.#oldest = Math.min(this.#oldest, timeOf(raw) ?? Infinity);
    const wasBarren = this.#isBarren;
    this.#isBarren = added === 0;
    // A page of one second that is known: what that second has beyond it cannot be asked for. So on with the one before.
    if (this.#isBarren) this.#oldest -= 1;
    const isMore = added > 0 || (page.length > 1 && !wasBarren);
    return { isMore: isMore && this.#oldest >= since, strays: page.length - inside.length };
  }

  /** All that waits, oldest first. */
  take(): unknown[] {
    const taken = this.#waiting.toSorted((a, b) => a.at - b.at);
    this.#waiting = [];
    this.#chars = 0;
    return taken.map(({ raw }) => raw);
  }

  #add(raw: unknown): boolean {
    const { id, content } = (raw ?? {}) as Record<string, unknown>;
    if (typeof id === 'string') {
      if (this.#ids.has(id)) return false;
      this.#ids.add(id.slice(0, 64));
    }
    this.#chars += typeof content === 'string' ? content.length : 0;
    this.#waiting.push({ raw, at: timeOf(raw) ?? 0 });
    return typeof id === 'string';
  }
}

function timeOf(raw: unknown): number | null {
  const at = (raw as { created_at?: unknown } | null)?.created_at;
  return typeof at === 'number' && Number.isSafeInteger(at) ? at : null;
}
