import type { ActorAddress, TenantId } from '../events/index.ts';

/**
 * The routing port. A wake says only "look at this actor": it carries no content, may come twice, and is a hint; the
 * store is the truth. Proved by `testing/router-conformance.ts`:
 *  R1  Wakes of one actor are merged while it waits; after any wake the handler starts at least once more.
 *  R2  A wake during a run starts one more run after it, never a parallel one in this process.
 *  R3  `busy` (another process holds the lease) runs again after the given delay; it is not lost. Where many wait, what
 *      `isBegun` goes before what is not.
 *  R4  At most `concurrency` handlers run at once. Tenants take turns, and in each its conversations, with the threads
 *      that began in them; within one of these, actors that wait are served in the order of their wakes.
 *  R5  A handler that throws does not stop the router; the error goes to `onError` and the wake is considered done.
 *  R6  `close` takes no new wakes, waits for running handlers, and never hangs on delayed ones.
 *  R7  `backlog` counts the actors of a tenant whose wakes nobody has taken; it may lag behind, and is 0 at rest.
 *  R8  What a router holds of a tenant is bounded: a wake beyond it is left out, and the sweeper finds its actor.
 *  R9  `check` rejects while something keeps wakes from being served, and says what.
 */
/** `isBegun`: somebody is, or was, at work on it, and it should not queue again behind what nobody has looked at. */
export type WakeOutcome = { kind: 'done' } | { kind: 'busy'; retryInMs: number; isBegun?: true };
export type WakeHandler = (address: ActorAddress) => Promise<WakeOutcome>;

/** Default maximum of waiting actors per tenant. */
export const MOST_WAITING = 100_000;

export interface QueueDepth {
  waiting: number;
  active: number;
  delayed: number;
}

export interface Router {
  wake(address: ActorAddress, options?: { delayMs?: number }): Promise<void>;
  /** Starts serving wakes; those that came before are served too. `onLost`: many wakes are lost, the store knows which. */
  start(
    handler: WakeHandler,
    options: {
      concurrency: number;
      onError: (error: unknown, address: ActorAddress) => void;
      onLost?: () => void;
    },
  ): void;
  depth(): Promise<QueueDepth>;
  /** Actors of one tenant that wait, over all processes. */
  backlog(tenant: TenantId): Promise<number>;
  check(): Promise<void>;
  close(): Promise<void>;
}
