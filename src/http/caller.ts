import type { Context } from 'hono';
import { onAccount } from '../base/work.ts';
import type { Principal, Reading, Traffic } from '../library/access/index.ts';
import type { Troupe } from '../library/troupe.ts';
import { rateLimited } from './refusal.ts';

/** The caller of a request, and their tenant's troupe, limited to what they were granted. */
export interface Caller {
  /** Who they are, with their scopes and grants. */
  principal: Principal;
  /** Each method checks the grant. */
  troupe: Troupe;
  /** Whether the credential still identifies the same principal; open streams ask. Null: it cannot change. */
  isStillGood: (() => Promise<boolean>) | null;
  /** Limits on what callers and tenants may do at once, and how often. */
  traffic: Traffic;
  /** Called by a request that begins to wait for something else: other requests of its tenant no longer queue behind it. */
  parked: () => void;
  /** The request's account of reads. Null for writes. */
  reading: Reading | null;
}

/** A symbol cannot clash with the context variables of an app that this one is mounted in. */
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

/** Opens an account of the caller's reads. Throws `rate_limited` if the caller has read too much lately. */
export async function beginReading({
  principal,
  traffic,
}: Pick<Caller, 'principal' | 'traffic'>): Promise<Reading> {
  const reading = await traffic.reads.begin(principal);
  if (!('retryAfterMs' in reading)) return reading;
  const { workPerSecond: most } = traffic.reads.limits;
  const message = `one caller may read at most ${most} rows and KiB a second`;
  throw rateLimited(message, most, reading.retryAfterMs);
}

/** Charges the reads of `work` to the caller. A GET request has its account already. Throws as `beginReading` does. */
export async function readAs<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
  if (caller.reading) return work();
  const reading = await beginReading(caller);
  try {
    return await onAccount(reading, work);
  } finally {
    reading.end();
  }
}
