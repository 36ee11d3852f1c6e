import type { Clock } from '../base/clock.ts';
import { addressKey } from '../events/index.ts';
import type { ActorAddress, TenantId } from '../events/index.ts';
import { type Metrics, NO_METRICS, type Timers } from '../events/metrics.ts';
import { createSharing, slicesOf } from '../base/slices.ts';
import { createFairQueue, familyOf, FEW } from './fair-share.ts';
import {
  assertStartable,
  MOST_WAITING,
  type Router,
  type Service,
  type WaitingWake,
  type WakeOutcome,
} from './router.ts';

type ActorState = 'waiting' | 'active' | 'active-again' | 'held-back';

interface Actor {
  readonly key: string;
  readonly address: ActorAddress;
  state: ActorState;
  /** Start of its wait, on the monotonic clock. The wait continues while the actor is held back. */
  since: number | null;
}

interface InProcessRouterOptions {
  clock: Clock;
  metrics?: Metrics;
  mostWaiting?: number | undefined;
}

/** Number of starts after which the event loop gets a turn. Otherwise agents that wake each other starve timers and sockets. */
const STARTS_PER_LOOP_TURN = 8;
const WOKEN = Promise.resolve();
const DONE: WakeOutcome = { kind: 'done' };

export function createInProcessRouter(options: InProcessRouterOptions): Router {
  return new InProcessRouter(options);
}

/**
 * The router of one process. Wakes are in memory and end with it, which is allowed because the store is the truth.
 *
 * Owns: which actors wait, run, or are held back. Does not own: leases, time, what a handler does.
 *  I1  An actor is in `#actors` exactly while it is not idle, and in the queue exactly while it is `waiting`.
 *  I2  `#running` is the number of actors that are `active` or `active-again`, and never exceeds the concurrency.
 *  I3  Only `#settle` leaves `active`, so no actor runs twice at once (R2).
 *  I4  A delayed wake is not a state of its actor: when due, it is an ordinary wake. Earlier wakes neither hasten nor
 *      replace it, so the handler starts after the due time in any case.
 *  I5  At most `mostWaiting` actors of a tenant are in `#actors`. A wake of one more is left to the sweeper.
 *  I6  While tenants share the process, a tenant with more than `FEW` actors here starts handlers only when the event
 *      loop is idle (`slices.ts`). Turns that wait for a model leave it idle; turns that compute would delay the requests
 *      of all others. A process with one tenant has no such limit.
 *  I7  `#actors` is ordered by the start of the wait, as far as its actors wait.
 *
 * Public members are fields, so that a wrapper can spread the router.
 */
class InProcessRouter implements Router {
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #mostWaiting: number;
  readonly #actors = new Map<string, Actor>();
  readonly #actorsOf = new Map<TenantId, number>();
  readonly #queue = createFairQueue<Actor>();
  readonly #sharing;
  readonly #closing = new AbortController();
  #isClosing = false;
  readonly #drained = Promise.withResolvers<void>();
  #service: Service | null = null;
  #running = 0;
  #delayed = 0;
  #startsLeft = STARTS_PER_LOOP_TURN;
  #isPumpScheduled = false;
  #isSliceRequested = false;

  constructor({ clock, metrics = NO_METRICS, mostWaiting = MOST_WAITING }: InProcessRouterOptions) {
    this.#clock = clock;
    this.#metrics = metrics;
    this.#mostWaiting = mostWaiting;
    this.#sharing = createSharing(clock);
  }

  readonly wake: Router['wake'] = (address, { delayMs = 0 } = {}) => {
    if (delayMs <= 0) this.#wakeNow(address);
    else if (!this.#isClosing) this.#later(delayMs, () => this.#wakeNow(address));
    return WOKEN;
  };

  #wakeNow(address: ActorAddress): void {
    if (this.#isClosing) return;
    const { tenant } = address;
    this.#sharing.note(tenant);
    const key = addressKey(address);
    const known = this.#actors.get(key);
    // `waiting`, `active-again` and `held-back` are followed by a start anyway. A held-back actor keeps its delay:
    // another process has the lease until then, so an earlier start would only find it busy again.
    if (known?.state === 'active') known.state = 'active-again';
    const count = this.#count(tenant);
    if (known || count >= this.#mostWaiting) return;
    const actor: Actor = { key, address, state: 'waiting', since: this.#clock.monotonic() };
    this.#actors.set(key, actor);
    this.#actorsOf.set(tenant, count + 1);
    this.#enqueue(actor);
  }

  #enqueue(actor: Actor): void {
    const { tenant, conversation } = actor.address;
    actor.state = 'waiting';
    this.#queue.push(actor, [tenant, familyOf(conversation)]);
    this.#schedulePump();
  }

  /** Handlers start from a microtask, never inside the caller of `wake`. */
  #schedulePump(): void {
    if (this.#isPumpScheduled || !this.#service || this.#isClosing) return;
    this.#isPumpScheduled = true;
    if (this.#startsLeft > 0) queueMicrotask(this.#pump);
    else this.#pumpNextLoopTurn();
  }

  #pumpNextLoopTurn(): void {
    setImmediate(() => {
      this.#startsLeft = STARTS_PER_LOOP_TURN;
      this.#pump();
    });
  }

  /** Starts waiting actors. `slices` of them may start although their tenant must wait for idle time (I6). */
  readonly #pump = (slices = 0): void => {
    this.#isPumpScheduled = false;
    const service = this.#service;
    if (!service || this.#isClosing) return;
    while (this.#running < service.concurrency && (this.#startsLeft > 0 || slices > 0)) {
      const actor = this.#queue.shift(slices > 0 ? undefined : this.#mayStart);
      if (!actor) return this.#queue.size() > 0 ? this.#requestSlice() : undefined;
      if (slices > 0) slices -= 1;
      else this.#startsLeft -= 1;
      this.#running += 1;
      actor.state = 'active';
      void this.#run(service, actor);
    }
    if (this.#running >= service.concurrency || this.#queue.size() === 0) return;
    this.#isPumpScheduled = true;
    this.#pumpNextLoopTurn();
  };

  readonly #mayStart = (tenant: string): boolean =>
    this.#count(tenant as TenantId) <= FEW || !this.#sharing.isShared();

  #requestSlice(): void {
    if (this.#isSliceRequested) return;
    this.#isSliceRequested = true;
    void slicesOf(this.#clock)
      .next()
      .then(() => {
        this.#isSliceRequested = false;
        this.#pump(1);
      });
  }

  async #run({ handler, onError }: Service, actor: Actor): Promise<void> {
    let outcome = DONE;
    let ended: Timers['activation']['outcome'] = 'failed';
    const began = this.#clock.monotonic();
    const waitEnded = (at = this.#clock.monotonic()) => {
      if (actor.since === null) return;
      this.#metrics.time('wake_wait', {}, at - actor.since);
      actor.since = null;
    };
    try {
      outcome = await handler(actor.address, waitEnded);
      ended = outcome.kind;
    } catch (error) {
      onError(error, actor.address);
    } finally {
      if (ended !== 'busy') waitEnded(began);
      this.#metrics.time('activation', { outcome: ended }, this.#clock.monotonic() - began);
      this.#settle(actor, outcome);
    }
  }

  #settle(actor: Actor, outcome: WakeOutcome): void {
    this.#running -= 1;
    if (this.#isClosing) {
      if (this.#running === 0) this.#drained.resolve();
      return;
    }
    if (outcome.kind === 'busy') {
      if (actor.since === null) this.#waitAnew(actor);
      actor.state = 'held-back';
      this.#later(outcome.retryInMs, () => this.#enqueue(actor));
    } else if (actor.state === 'active-again') {
      this.#waitAnew(actor);
      this.#enqueue(actor);
    } else this.#remove(actor);
    this.#schedulePump();
  }

  #waitAnew(actor: Actor): void {
    actor.since = this.#clock.monotonic();
    this.#actors.delete(actor.key);
    this.#actors.set(actor.key, actor);
  }

  #remove({ key, address: { tenant } }: Actor): void {
    this.#actors.delete(key);
    const left = this.#count(tenant) - 1;
    if (left > 0) this.#actorsOf.set(tenant, left);
    else this.#actorsOf.delete(tenant);
  }

  #count(tenant: TenantId): number {
    return this.#actorsOf.get(tenant) ?? 0;
  }

  #later(ms: number, act: () => void): void {
    this.#delayed += 1;
    void this.#clock.sleep(ms, this.#closing.signal, 'pause').then(() => {
      this.#delayed -= 1;
      if (!this.#isClosing) act();
    });
  }

  readonly start: Router['start'] = (handler, options) => {
    assertStartable(this.#service, options.concurrency);
    this.#service = { handler, ...options };
    this.#schedulePump();
  };

  readonly depth: Router['depth'] = async () => ({
    waiting: this.#queue.size(),
    active: this.#running,
    delayed: this.#delayed,
  });

  readonly backlog: Router['backlog'] = async (tenant) => this.#queue.sizeOf(tenant);

  readonly waiting: Router['waiting'] = async (limit, tenant) => {
    const epoch = this.#clock.now() - this.#clock.monotonic();
    const found: WaitingWake[] = [];
    for (const { state, address, since } of this.#actors.values()) {
      if (found.length >= limit) break;
      if (since === null || state.startsWith('active')) continue;
      if (tenant !== undefined && tenant !== address.tenant) continue;
      found.push({ address, since: Math.round(epoch + since), isHeldBack: state === 'held-back' });
    }
    return found;
  };

  readonly check: Router['check'] = () => WOKEN;

  readonly close: Router['close'] = () => {
    this.#isClosing = true;
    this.#closing.abort();
    if (this.#running === 0) this.#drained.resolve();
    return this.#drained.promise;
  };
}
