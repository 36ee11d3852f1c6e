import type { Clock } from '../clock.ts';
import type { TenantId } from '../events/index.ts';
import { createSharing } from '../slices.ts';

/** Requests of one tenant under way at once beside other tenants. */
const AT_ONCE = 2;
/** Requests of one tenant that may wait. */
export const MOST_WAITING = 1_000;
/** A request that takes longer waits for something, and no longer holds up those behind it, ms. */
const LONG_MS = 1_000;

interface Line {
  underWay: number;
  /** Begins the requests that wait, in their order. */
  waiting: (() => void)[];
}

/**
 * Lets requests in before anything is read or done for them, so that a tenant with hundreds of connections delays the requests of
 * another by no more than `AT_ONCE` of its own.
 *  1. While one tenant alone uses the process, every request begins at once.
 *  2. Else each tenant has `AT_ONCE` requests under way; its others wait in its own line.
 *  3. A request is under way until its answer begins, it says that it waits (for an agent, for a place), or `LONG_MS` have passed.
 *  4. Refused requests of a known caller wait as well: refusing them in a loop costs as much as serving them.
 */
export class Turnstile {
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #sharing;
  readonly #lines = new Map<TenantId, Line>();

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.#clock = clock;
    this.#sharing = createSharing(clock);
  }

  /**
   * Waits for the tenant's turn. Returns how the request leaves, which may be called repeatedly; null if too many wait.
   */
  enter(tenant: TenantId): (() => void) | Promise<() => void> | null {
    this.#sharing.note(tenant);
    const line = this.#lines.get(tenant) ?? { underWay: 0, waiting: [] };
    this.#lines.set(tenant, line);
    if (line.underWay < AT_ONCE || !this.#sharing.isShared()) return this.#begin(tenant, line);
    if (line.waiting.length >= MOST_WAITING) return null;
    return new Promise((resolve) => line.waiting.push(() => resolve(this.#begin(tenant, line))));
  }

  #begin(tenant: TenantId, line: Line): () => void {
    line.underWay += 1;
    let isUnderWay = true;
    const leave = () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      line.underWay -= 1;
      if (line.waiting.length > 0 && (line.underWay < AT_ONCE || !this.#sharing.isShared()))
        line.waiting.shift()?.();
      else if (line.underWay === 0) this.#lines.delete(tenant);
    };
    if (line.underWay >= AT_ONCE && this.#sharing.isShared()) void this.#clock.sleep(LONG_MS).then(leave);
    return leave;
  }
}
