import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import { addressKey } from '../events/index.ts';
import type { ActorAddress, TenantId } from '../events/index.ts';
import { type Metrics, NO_METRICS, type Timers } from '../metrics.ts';
import { createFairQueue, familyOf } from './fair-queue.ts';
import { createSharing, FEW } from './fair-share.ts';
import { slicesOf } from '../slices.ts';
import { MOST_WAITING, type QueueDepth, type Router, type WakeHandler, type WakeOutcome } from './router.ts';

/**
 * The router of one process: wakes live in memory and die with it, which is allowed because the store is the truth.
 *
 * Owns: which actors wait, run, or are held back. Does not own: leases, time (the clock's), what a handler does.
 *  I1  An actor is in `actors` exactly while it is not idle, and in the queue exactly while it is `waiting`.
 *  I2  `running` is the number of actors that are `active` or `active-again`, and never exceeds the concurrency.
 *  I3  Only `settle` leaves `active`, so that no actor runs twice at once (R2).
 *  I4  A wake with a delay is no state of an actor: when it is due it is an ordinary wake. Wakes that come earlier
 *      therefore neither hasten it nor replace it, and the actor is looked at after its due time in any case.
 *  I5  Of a tenant no more than `mostWaiting` actors are in `actors`: a wake of one more is left to the sweeper.
 *  I6  While tenants share the process, a wake of a tenant with more than `FEW` actors here starts only when the event
 *      loop has nothing else to do (`slices.ts`). Turns that wait for a model leave it idle, and as many run as may; turns
 *      that compute would make all requests of others wait. A process with one tenant knows no such limit.
 */
type ActorState = 'waiting' | 'active' | 'active-again' | 'held-back';

interface Actor {
  readonly key: string;
  readonly address: ActorAddress;
  state: ActorState;
  /** Start of its wait, on the monotonic clock. */
  since: number;
}

interface Service {
  handler: WakeHandler;
  concurrency: number;
  onError: (error: unknown, address: ActorAddress) => void;
}

/** The event loop gets a turn after this many starts; otherwise agents that wake each other starve timers and sockets. */
const STARTS_PER_LOOP_TURN = 8;
const WOKEN = Promise.resolve();
const DONE: WakeOutcome = { kind: 'done' };

export function createInProcessRouter({
  clock,
  metrics = NO_METRICS,
  mostWaiting = MOST_WAITING,
}: {
  clock: Clock;
  metrics?: Metrics;
  mostWaiting?: number | undefined;
}): Router {
  const actors = new Map<string, Actor>();
  const queue = createFairQueue<Actor>();
  const known = new Map<TenantId, number>();
  const sharing = createSharing(clock);
  const slices = slicesOf(clock);
  let sliceAsked = false;
  const closing = new AbortController();
  const drained = Promise.withResolvers<void>();
  let service: Service | null = null;
  let running = 0;
  let delayed = 0;
  let startsLeft = STARTS_PER_LOOP_TURN;
  let pumpScheduled = false;

  function wakeNow(address: ActorAddress): void {
    if (closing.signal.aborted) return;
    sharing.note(address.tenant);
    const key = addressKey(address);
    const actor = actors.get(key);
    if (!actor) add({ key, address, state: 'waiting', since: 0 });
    else if (actor.state === 'active') actor.state = 'active-again';
    // `waiting`, `active-again` and `held-back` are followed by a start anyway. A held-back actor keeps its delay: the
    // lease is another's until then, and an earlier look would only find it busy again.
  }

  function add(actor: Actor): void {
    const { tenant } = actor.address;
    if ((known.get(tenant) ?? 0) >= mostWaiting) return;
    count(known, tenant, 1);
    actors.set(actor.key, actor);
    enqueue(actor);
  }

  function enqueue(actor: Actor): void {
    const { tenant, conversation } = actor.address;
    actor.state = 'waiting';
    actor.since = clock.monotonic();
    queue.push(actor, { tenant, family: familyOf(conversation) });
    schedulePump();
  }

  function remove({ key, address: { tenant } }: Actor): void {
    actors.delete(key);
    count(known, tenant, -1);
  }

  /** Handlers start from a microtask, never inside the caller of `wake`. */
  function schedulePump(): void {
    if (pumpScheduled || !service || closing.signal.aborted) return;
    pumpScheduled = true;
    if (startsLeft > 0) return queueMicrotask(pump);
    nextLoopTurn();
  }

  function nextLoopTurn(): void {
    setImmediate(() => {
      startsLeft = STARTS_PER_LOOP_TURN;
      pump();
    });
  }

  function mayStart(tenant: TenantId): boolean {
    return (known.get(tenant) ?? 0) <= FEW || !sharing.isShared();
  }

  /** Asks for a slice of idle time for tenants that must wait for one. */
  function askSlice(): void {
    if (sliceAsked) return;
    sliceAsked = true;
    void slices.next().then(() => {
      sliceAsked = false;
      pump(1);
    });
  }

  function pump(granted = 0): void {
    pumpScheduled = false;
    if (!service || closing.signal.aborted) return;
    let inSlice = granted;
    while (running < service.concurrency && (startsLeft > 0 || inSlice > 0)) {
      const actor = queue.shift((tenant) => inSlice > 0 || mayStart(tenant as TenantId));
      // Waiting actors start with the next slice.
      if (!actor) return queue.size() > 0 ? askSlice() : undefined;
      if (inSlice > 0) inSlice -= 1;
      else startsLeft -= 1;
      running += 1;
      actor.state = 'active';
      void run(service, actor);
    }
    if (running >= service.concurrency || queue.size() === 0) return;
    pumpScheduled = true;
    nextLoopTurn();
  }

  async function run({ handler, onError }: Service, actor: Actor): Promise<void> {
    let outcome = DONE;
    const began = clock.monotonic();
    let ended: Timers['activation']['outcome'] = 'failed';
    metrics.time('wake_wait', {}, began - actor.since);
    try {
      outcome = await handler(actor.address);
      ended = outcome.kind;
    } catch (error) {
      onError(error, actor.address);
    } finally {
      metrics.time('activation', { outcome: ended }, clock.monotonic() - began);
      settle(actor, outcome);
    }
  }

  function settle(actor: Actor, outcome: WakeOutcome): void {
    running -= 1;
    if (closing.signal.aborted) {
      if (running === 0) drained.resolve();
      return;
    }
    if (outcome.kind === 'busy') {
      actor.state = 'held-back';
      later(outcome.retryInMs, () => enqueue(actor));
    } else if (actor.state === 'active-again') enqueue(actor);
    else remove(actor);
    schedulePump();
  }

  function later(ms: number, act: () => void): void {
    delayed += 1;
    void clock.sleep(ms, closing.signal).then(() => {
      delayed -= 1;
      if (!closing.signal.aborted) act();
    });
  }

  function wake(address: ActorAddress, { delayMs = 0 }: { delayMs?: number } = {}): Promise<void> {
    if (delayMs <= 0) wakeNow(address);
    else if (!closing.signal.aborted) later(delayMs, () => wakeNow(address));
    return WOKEN;
  }

  function start(handler: WakeHandler, options: Omit<Service, 'handler'>): void {
    if (service)
      throw new TroupeError('internal', 'this router was started already; a router serves one handler');
    if (!Number.isInteger(options.concurrency) || options.concurrency < 1) {
      throw new TroupeError(
        'config_invalid',
        `concurrency must be a whole number from 1, not ${options.concurrency}`,
      );
    }
    service = { handler, ...options };
    schedulePump();
  }

  async function depth(): Promise<QueueDepth> {
    return { waiting: queue.size(), active: running, delayed };
  }

  function close(): Promise<void> {
    closing.abort();
    if (running === 0) drained.resolve();
    return drained.promise;
  }

  const backlog = async (tenant: TenantId): Promise<number> => queue.sizeOf(tenant);

  return { wake, start, depth, backlog, check: () => WOKEN, close };
}

/** Counts of 0 are removed. */
function count(counts: Map<TenantId, number>, tenant: TenantId, by: number): void {
  const left = (counts.get(tenant) ?? 0) + by;
  if (left > 0) counts.set(tenant, left);
  else counts.delete(tenant);
}
