import type { Context } from 'hono';
import type { Principal, Reading, Traffic } from '../library/access/index.ts';
import type { Troupe } from '../library/troupe.ts';

/** The caller of a request, and the troupe of their tenant, narrowed to what they were granted. */
export interface Caller {
  principal: Principal;
  troupe: Troupe;
  /** Whether the credential still identifies the same principal; for streams. Null: it cannot change. */
  isStillGood: (() => Promise<boolean>) | null;
  traffic: Traffic;
  /** To be called by a request that now waits for others: requests of its tenant need not wait for it any longer. */
  parked: () => void;
  /** Account of a request that only reads. Null for writes. */
  reading: Reading | null;
}

/** A symbol, so that it is none of the variables of an app that this one is mounted in. */
const CALLER = Symbol('caller');

/** Kept on the context itself: a `WeakMap` would keep each finished request alive until the next full garbage collection. */
type WithCaller = Context & { [CALLER]?: Caller };

export function setCaller(context: Context, caller: Caller): void {
  (context as WithCaller)[CALLER] = caller;
}

/** Throws if the route is not behind the guard. */
export function callerOf(context: Context): Caller {
  const caller = (context as WithCaller)[CALLER];
  if (!caller) throw new Error('a route was reached past the guard');
  return caller;
}
