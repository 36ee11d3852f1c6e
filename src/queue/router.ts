import { TroupeError } from '../base/errors.ts';
import type { ActorAddress, TenantId } from '../events/index.ts';

/**
 * The port of the wake queue. A wake says only "look at this actor": it has no content, may come twice, and is a hint;
 * the store is the truth. Tested by `testing/router-conformance.ts`:
 *  R1  Wakes of one actor merge while it waits. After any wake its handler starts at least once more.
 *  R2  A wake during a run starts one more run after it, never a parallel one in this process.
 *  R3  A `busy` actor (another process holds its lease) runs again after the given delay; its wake is not lost. In a long
 *      queue, actors with `isBegun` go first.
 *  R4  At most `concurrency` handlers run at once. Tenants take turns, and so do the conversations of a tenant, each with
 *      the threads that began in it. Within a conversation, actors are served in the order of their wakes.
 *  R5  A handler that throws does not stop the router. The error goes to `onError`, and the wake counts as done.
 *  R6  `close` takes no new wakes, waits for running handlers, and never waits for delayed wakes.
 *  R7  `backlog` counts the actors of a tenant that wait for a handler. It may lag behind, and is 0 at rest.
 *  R8  The number of waiting actors per tenant is bounded. A wake beyond it is dropped; the sweeper finds its actor.
 *  R9  `check` rejects with the reason while wakes cannot be served.
 *  R10 `waiting` has the actors whose handler has not begun, each with the time of its wake, however often it was `busy`.
 */
export interface Router {
  /** Wakes an agent. */
  wake(address: ActorAddress, options?: { delayMs?: number }): Promise<void>;
  /** Starts serving wakes, including earlier ones. `onLost`: wakes were lost; the store knows which actors have work. */
  start(handler: WakeHandler, options: Omit<Service, 'handler'> & { onLost?: () => void }): void;
  /** Numbers of wakes. */
  depth(): Promise<QueueDepth>;
  /** Number of waiting actors of one tenant, over all processes. */
  backlog(tenant: TenantId): Promise<number>;
  /** The actors that wait, the longest first, at most `limit`. Those of one tenant if it is named. */
  waiting(limit: number, tenant?: TenantId): Promise<WaitingWake[]>;
  /** Throws `queue_unavailable` if it cannot be reached. */
  check(): Promise<void>;
  /** Closes it. */
  close(): Promise<void>;
}

/** `isBegun`: a turn of the actor has begun, so the actor should not queue behind actors without one. */
export type WakeOutcome = { kind: 'done' } | { kind: 'busy'; retryInMs: number; isBegun?: true };
/** `begun` says that the work begins, so the wake no longer waits. A handler that is not `busy` need not call it. */
export type WakeHandler = (address: ActorAddress, begun: () => void) => Promise<WakeOutcome>;

/** The handler that a router serves wakes with. */
export interface Service {
  /** Serves one wake. */
  handler: WakeHandler;
  /** Most handlers that run at once. */
  concurrency: number;
  /** Receives what the handler throws. */
  onError: (error: unknown, address: ActorAddress) => void;
}

/** An actor that waits. */
export interface WaitingWake {
  /** The actor. */
  address: ActorAddress;
  /** When it was woken, ms since the epoch. */
  since: number;
  /** Whether its handler was `busy` and is called again later. */
  isHeldBack: boolean;
}

/** Numbers of wakes. */
export interface QueueDepth {
  /** Waiting for a process. */
  waiting: number;
  /** Running. */
  active: number;
  /** Waiting for their time. */
  delayed: number;
}

/** Default maximum of waiting actors per tenant. */
export const MOST_WAITING = 100_000;

/** Refuses a second `start` and an invalid concurrency. */
export function assertStartable(started: Service | null, concurrency: number): void {
  if (started) throw new TroupeError('internal', 'this router was started already; it serves one handler');
  if (Number.isInteger(concurrency) && concurrency >= 1) return;
  throw new TroupeError('config_invalid', `concurrency must be a whole number from 1, not ${concurrency}`);
}
