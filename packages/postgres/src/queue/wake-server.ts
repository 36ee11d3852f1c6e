import {
  addressKey,
  type Clock,
  createFairShare,
  type Outage,
  type RouterObserver,
  type Service,
  type StorePace,
  type WakeOutcome,
} from '../troupe.ts';
import { createBatches } from './queue-database.ts';
import type { EndedWake, HeldWake, WakeTable } from './wake-table.ts';

export interface WakeServerDeps {
  table: WakeTable;
  /** Identifies this process among the holders of wakes. */
  holder: string;
  service: Service;
  pace: StorePace;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  observer: RouterObserver;
  outage: Outage;
  lockMs: number;
  /** Interval of reading the table without a notification, ms. */
  pollMs: () => number;
  warn: (error: unknown, where: string) => void;
  /** Calls a callback of the application; what it throws becomes a warning. */
  notify: (call: () => void) => void;
  /** Called with the error of each failed statement. */
  onFailed: (error: unknown) => void;
}

const HOLD_BACK_MS = 100;
const HOLD_BACK_SPREAD_MS = 150;
const RETRY_MS = 1_000;
const MOST_ENDED = 256;

/**
 * Serves wakes: takes as many as it can run, calls the handler for each, and ends them.
 *
 * Owns: which actors run in this process. Does not own: leases. A wake whose holder is late is given to another process. Only
 * the store prevents both from committing.
 *  S1  A wake stays in the table while it is served. If its process is killed, it is served again after `lockMs`.
 *  S2  One read of the table runs at a time. Requests for a read meanwhile lead to one more.
 *  S3  A wake of an actor that already runs here is held back briefly.
 *  S4  `close` takes no more wakes, waits for the handlers, and puts back wakes whose handler has not begun.
 */
export class WakeServer {
  readonly #deps: WakeServerDeps;
  readonly #share: ReturnType<typeof createFairShare>;
  readonly #ends: { add(ended: EndedWake): Promise<number>; idle(): Promise<void> };
  readonly #running = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  readonly #renewals: NodeJS.Timeout;
  #looking: Promise<void> | null = null;
  #looksAgain = false;
  #pollsDue = false;
  /** Whether more wakes may be waiting than were taken. */
  #mayWait = false;

  constructor(deps: WakeServerDeps) {
    this.#deps = deps;
    this.#share = createFairShare(deps);
    const { table, holder } = deps;
    this.#ends = createBatches((ended: EndedWake[]) => table.end(holder, ended), MOST_ENDED);
    void this.#poll();
    this.#renewals = setInterval(() => void this.#renew(), deps.lockMs / 3).unref();
  }

  /** Reads the table soon. `inMs`: a wake is due after this time. */
  look(inMs = 0): void {
    if (inMs > 0) return void this.#lookIn(inMs);
    this.#looksAgain = true;
    this.#looking ??= this.#lookWhilePrompted().finally(() => (this.#looking = null));
  }

  async #lookIn(ms: number): Promise<void> {
    const { clock, pollMs } = this.#deps;
    // The regular read comes earlier than this wake.
    if (ms > pollMs()) return;
    await clock.sleep(Math.ceil(ms) + 1, this.#closing.signal);
    this.#pollsDue = true;
    this.look();
  }

  async #poll(): Promise<void> {
    const { clock, pollMs } = this.#deps;
    while (!this.#isClosing) {
      this.#pollsDue = true;
      this.look();
      await clock.sleep(pollMs(), this.#closing.signal);
    }
  }

  async #lookWhilePrompted(): Promise<void> {
    const { outage, onFailed } = this.#deps;
    while (this.#looksAgain && !this.#isClosing) {
      this.#looksAgain = false;
      try {
        if (this.#pollsDue) await this.#moveDue();
        await this.#take();
        outage.end('taking wakes');
      } catch (error) {
        onFailed(error);
        if (!this.#isClosing) outage.begin('taking wakes', error);
      }
    }
  }

  /** Lets wakes that are due, and those of dead processes, wait for a worker. */
  async #moveDue(): Promise<void> {
    const { table, warn } = this.#deps;
    const needs = await table.needs();
    this.#pollsDue = false;
    const [first, ...more] = needs.lapsed ? await table.free() : [];
    if (first) {
      const what = `${more.length + 1} wakes had stopped with their process and are served again`;
      warn(`${what}: the first is that of ${addressKey(first)}`, 'queue worker');
    }
    if (needs.dueInMs === null) return;
    if (needs.dueInMs > 0) this.look(needs.dueInMs);
    else if (await table.promote()) this.#pollsDue = this.#looksAgain = true;
  }

  async #take(): Promise<void> {
    const { table, service, holder, lockMs } = this.#deps;
    const room = service.concurrency - this.#running.size;
    this.#mayWait = room <= 0;
    if (room <= 0) return;
    const taken = await table.take(holder, room, lockMs);
    for (const wake of taken) this.#begin(wake);
    this.#mayWait = taken.length === room;
    if (this.#mayWait && this.#running.size < service.concurrency) this.#looksAgain = true;
  }

  #begin(wake: HeldWake): void {
    const key = addressKey(wake.address);
    if (this.#isClosing) return;
    if (this.#running.has(key)) {
      void this.#end({ id: wake.id, waitMs: this.#aMoment(), isBegun: false });
      return;
    }
    const served = this.#serve(wake).finally(() => {
      this.#running.delete(key);
      if (this.#mayWait && !this.#isClosing) this.look();
    });
    this.#running.set(key, served);
  }

  async #serve(wake: HeldWake): Promise<void> {
    const decision = await this.#share.enter(wake.address.tenant);
    if (decision.kind === 'closed') return;
    if (decision.kind === 'later') return this.#end({ id: wake.id, waitMs: decision.inMs, isBegun: false });
    const outcome = await this.#handle(wake);
    if (outcome.kind !== 'busy') return this.#end({ id: wake.id, waitMs: null, isBegun: false });
    await this.#end({ id: wake.id, waitMs: outcome.retryInMs, isBegun: outcome.isBegun ?? false });
  }

  async #handle({ address, since }: HeldWake): Promise<WakeOutcome | { kind: 'failed' }> {
    const { service, clock, observer, notify } = this.#deps;
    const takenAt = clock.now();
    const startedAt = clock.monotonic();
    let isTold = false;
    const waitEnded = (at = clock.now()) => {
      if (isTold) return;
      isTold = true;
      notify(() => observer.onTaken?.({ waitMs: Math.max(0, at - since) }));
    };
    let outcome: WakeOutcome | { kind: 'failed' } = { kind: 'failed' };
    try {
      outcome = await service.handler(address, waitEnded);
    } catch (error) {
      notify(() => service.onError(error, address));
    } finally {
      this.#share.leave(address.tenant);
    }
    const { kind } = outcome;
    if (kind !== 'busy') waitEnded(takenAt);
    notify(() => observer.onDone?.({ runMs: clock.monotonic() - startedAt, outcome: kind }));
    return outcome;
  }

  /** Tries until the server answers. Gives up while closing; another process then serves the wake again. */
  async #end(ended: EndedWake): Promise<void> {
    const { clock, outage, onFailed } = this.#deps;
    const waitMs = ended.waitMs === null ? null : Math.max(1, Math.round(ended.waitMs));
    for (;;) {
      try {
        const again = await this.#ends.add({ ...ended, waitMs });
        outage.end('ending wakes');
        if (waitMs !== null) this.look(waitMs);
        else if (again > 0) this.look();
        return;
      } catch (error) {
        onFailed(error);
        if (this.#isClosing) return;
        outage.begin('ending wakes', error);
        await clock.sleep(RETRY_MS, this.#closing.signal);
      }
    }
  }

  async #renew(): Promise<void> {
    const { table, holder, lockMs, onFailed } = this.#deps;
    if (this.#running.size > 0) await table.renew(holder, lockMs).catch(onFailed);
  }

  async #handlersEnded(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  #aMoment(): number {
    return HOLD_BACK_MS + this.#deps.random() * HOLD_BACK_SPREAD_MS;
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#share.close();
    await this.#looking;
    await this.#handlersEnded();
    await this.#ends.idle();
    clearInterval(this.#renewals);
    // Puts back the wakes whose handler has not begun.
    await this.#deps.table.putBack(this.#deps.holder).catch(this.#deps.onFailed);
  }
}
