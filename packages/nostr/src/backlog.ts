const MAX_SIZE = 2_000;
const MAX_CHARS = 16_777_216;

/**
 * The stored events of a relay: requested newest first, taken oldest first. They are not yet verified: a false id or time
 * only changes the order and the next request.
 */
export class Backlog {
  /** True if further events are live. */
  isOver = false;
  #waiting: { raw: unknown; at: number }[] = [];
  readonly #ids = new Set<string>();
  #chars = 0;
  #wasEmpty = false;
  #oldest = Infinity;

  /** Bound of the next request: none at first, then the time of the oldest event so far. */
  before(): { until?: number } {
    return this.#oldest === Infinity ? {} : { until: this.#oldest };
  }

  /** True if the waiting events should be taken before more are requested. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_SIZE || this.#chars >= MAX_CHARS;
  }

  /** True if the event is new and has an id. */
  add(raw: unknown): boolean {
    const { id, content } = (raw ?? {}) as Record<string, unknown>;
    if (typeof id === 'string') {
      if (this.#ids.has(id)) return false;
      this.#ids.add(id.slice(0, 64));
    }
    this.#chars += typeof content === 'string' ? content.length : 0;
    this.#waiting.push({ raw, at: timeOf(raw) ?? 0 });
    return typeof id === 'string';
  }

  /** Returns whether there may be more events, and the number of events outside the requested time. */
  addPage(page: readonly unknown[], since: number): { isMore: boolean; outside: number } {
    const until = this.#oldest;
    const inside = page.filter((raw) => {
      const at = timeOf(raw);
      return at === null || (at >= since && at <= until);
    });
    const added = inside.filter((raw) => this.add(raw)).length;
    for (const raw of inside) this.#oldest = Math.min(this.#oldest, timeOf(raw) ?? Infinity);
    const wereEmpty = this.#wasEmpty;
    this.#wasEmpty = added === 0;
    // Without new events, the rest of this second is out of reach: the second before is next.
    if (this.#wasEmpty) this.#oldest -= 1;
    const isMore = added > 0 || (page.length > 1 && !wereEmpty);
    return { isMore: isMore && this.#oldest >= since, outside: page.length - inside.length };
  }

  /** Removes and returns the waiting events, oldest first. */
  take(): unknown[] {
    const taken = this.#waiting.toSorted((a, b) => a.at - b.at);
    this.#waiting = [];
    this.#chars = 0;
    return taken.map(({ raw }) => raw);
  }
}

function timeOf(raw: unknown): number | null {
  const at = (raw as { created_at?: unknown } | null)?.created_at;
  return typeof at === 'number' && Number.isSafeInteger(at) ? at : null;
}
