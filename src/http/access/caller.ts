import type { Context } from 'hono';
import type { Principal, Reading, Traffic } from '../../access/index.ts';
import type { Troupe } from '../../troupe.ts';

/** Who a request is from, and the troupe as far as it is theirs: of their tenant, and of that what they were granted. */
export interface Caller {
  principal: Principal;
  troupe: Troupe;
  /** Whether they still are who they were when the request came. For streams, which outlive that; null: they cannot become others. */
  isStillGood: (() => Promise<boolean>) | null;
  traffic: Traffic;
  /** Of what only reads: what it costs is charged to it. */
  reading: Reading | null;
}

const callers = new WeakMap<Context, Caller>();

export function setCaller(context: Context, caller: Caller): void {
  callers.set(context, caller);
}

/** Throws where no guard stands before the route. */
export function callerOf(context: Context): Caller {
  const caller = callers.get(context);
  if (!caller) throw new Error('a route was reached past the guard');
  return caller;
}

export function troupeOf(context: Context): Troupe {
  return callerOf(context).troupe;
}
