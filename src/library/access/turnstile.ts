import type { Clock } from '../../base/clock.ts';
import type { TenantId } from '../../events/index.ts';
import { createSharing, slicesOf } from '../../base/slices.ts';

/** Requests of one tenant under way at once beside other tenants: those of people and applications. */
const FEW = 8;
/** The same for a tenant that has had more of them a moment ago: a flood. */
const AT_ONCE = 1;
const FLOOD_MS = 10_000;
/** Requests of one tenant that may wait. */
export const MOST_WAITING = 1_000;
/** A request that takes longer waits for something, and no longer holds up those behind it, ms. */
const LONG_MS = 1_000;

interface Line {
  /** Null: unknown callers. */
  tenant: TenantId | null;
  /** When each request began, on the monotonic clock, by how it leaves. */
  underWay: Map<() => void, number>;
  /** How many began in this turn of the event loop. Many end in it, so that never two are under way. */
  begunInTurn: number;
  /** Begins the requests that wait, in their order. */
  waiting: (() => void)[];
  /** Until then it counts as a flood, on the monotonic clock. */
  floodUntil: number;
  isWatched: boolean;
  isSliceRequested: boolean;
}

/**
 * Lets requests in before anything is read or done for them, so that a tenant with hundreds of connections delays the requests of
 * another by no more than `AT_ONCE` of its own.
 *  1. While one tenant alone uses the process, every request begins at once.
 *  2. Else each tenant has `FEW` requests under way, or `AT_ONCE` if it floods; its others wait in its own line.
 *  3. A request is under way until its answer begins, it says that it waits (for an agent, for a place), or `LONG_MS` have passed, and
 *     at least until the event loop has come round.
 *  4. Requests of a flood begin only when the event loop is idle (`slices.ts`): those that are answered at once would otherwise
 *     follow each other without letting in a request of another tenant.
 *  5. Refused requests wait as well: refusing them in a loop costs as much as serving them. Those of unknown callers (null) share a
 *     line, and do not make a tenant share the process.
 */
export class Turnstile {
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly #sharing;
  readonly #slices;
  readonly #lines = new Map<TenantId | null, Line>();

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.#clock = clock;
    this.#sharing = createSharing(clock);
    this.#slices = slicesOf(clock);
  }

  /** Waits for the tenant's turn. Returns how the request leaves, which may be called repeatedly; null if too many wait. */
  enter(tenant: TenantId | null): (() => void) | Promise<() => void> | null {
    if (tenant !== null) this.#sharing.note(tenant);
    const line = this.#lineOf(tenant);
    if (Math.max(placesTaken(line), line.waiting.length) >= FEW)
      line.floodUntil = this.#clock.monotonic() + FLOOD_MS;
    if (line.waiting.length === 0 && !this.#isPaced(line) && this.#mayBegin(line)) return this.#begin(line);
    if (line.waiting.length >= MOST_WAITING) return null;
    if (!line.isWatched) void this.#watch(line);
    return new Promise((resolve) => {
      line.waiting.push(() => resolve(this.#begin(line)));
      this.#letIn(line);
    });
  }

  #lineOf(tenant: TenantId | null): Line {
    const known = this.#lines.get(tenant);
    if (known) return known;
    const line: Line = {
      tenant,
      underWay: new Map(),
      begunInTurn: 0,
      waiting: [],
      floodUntil: -Infinity,
      isWatched: false,
      isSliceRequested: false,
    };
    this.#lines.set(tenant, line);
    return line;
  }

  #begin(line: Line): () => void {
    const leave = () => {
      if (!line.underWay.delete(leave)) return;
      this.#letIn(line);
    };
    line.underWay.set(leave, this.#clock.monotonic());
    if (this.#isBeside(line)) this.#countInTurn(line);
    return leave;
  }

  #countInTurn(line: Line): void {
    line.begunInTurn += 1;
    if (line.begunInTurn > 1) return;
    void this.#clock.sleep(0).then(() => {
      line.begunInTurn = 0;
      this.#letIn(line);
    });
  }

  /** Begins the requests that wait, as far as they may. */
  #letIn(line: Line): void {
    while (line.waiting.length > 0 && this.#mayBegin(line)) {
      if (this.#isPaced(line)) return this.#requestSlice(line);
      line.waiting.shift()?.();
    }
    const isOver = placesTaken(line) + line.waiting.length === 0 && !this.#floods(line);
    if (isOver && this.#lines.get(line.tenant) === line) this.#lines.delete(line.tenant);
  }

  #requestSlice(line: Line): void {
    if (line.isSliceRequested) return;
    line.isSliceRequested = true;
    void this.#slices.next().then(() => {
      line.isSliceRequested = false;
      line.waiting.shift()?.();
      this.#letIn(line);
    });
  }

  /** While requests wait, those that take long leave. */
  async #watch(line: Line): Promise<void> {
    line.isWatched = true;
    do {
      await this.#clock.sleep(LONG_MS);
      const long = this.#clock.monotonic() - LONG_MS;
      for (const [leave, since] of line.underWay) if (since <= long) leave();
    } while (line.waiting.length > 0);
    line.isWatched = false;
  }

  #mayBegin(line: Line): boolean {
    return !this.#isBeside(line) || placesTaken(line) < (this.#floods(line) ? AT_ONCE : FEW);
  }

  #isPaced(line: Line): boolean {
    return this.#isBeside(line) && this.#floods(line);
  }

  /** Whether others use the process. */
  #isBeside({ tenant }: Line): boolean {
    return tenant === null || this.#sharing.isShared();
  }

  #floods({ floodUntil }: Line): boolean {
    return this.#clock.monotonic() < floodUntil;
  }
}

function placesTaken({ underWay, begunInTurn }: Line): number {
  return Math.max(underWay.size, begunInTurn);
}
