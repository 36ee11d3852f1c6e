import type { Clock } from '../clock.ts';
import type { TenantId } from '../events/index.ts';

/**
 * Decides which wakes taken by a worker begin. While tenants share it, a busy tenant runs no more at once than the
 * store keeps pace with, so that other tenants stay as fast as before.
 *
 * Owns: what is here by tenant, at work or waiting. Does not own: how long the store takes.
 *  1. A tenant with at most `FEW` actors here, now and lately, begins at once, and so does everybody while one tenant has
 *     the worker.
 *  2. All others begin in the order in which they came, while fewer are at work than `pace` says; one always may.
 *  3. Of those no more than `MOST_WAITING` wait here, so that a worker has room for other tenants. Each of the rest is to
 *     come again at a time of its own, when it can be expected to be its turn.
 *  4. After `close` nobody who waits begins, and is told so.
 */
export type Admission = { kind: 'begin' } | { kind: 'later'; inMs: number } | { kind: 'closed' };

export interface FairShare {
  enter(tenant: TenantId): Promise<Admission>;
  /** After each `begin`. */
  leave(tenant: TenantId): void;
  close(): void;
}

/** Interval at which the changing pace is read. */
const LOOK_EVERY_MS = 50;
/** How long a tenant counts as busy after it had many actors here. */
const MANY_FOR_MS = 10_000;
const MOST_WAITING = 8;
/** A postponed wake returns after a time between these, ms. */
const SOONEST_MS = 250;
const LATEST_MS = 30_000;
const WEIGHT = 0.2;
const BEGIN: Admission = { kind: 'begin' };
const CLOSED: Admission = { kind: 'closed' };

export function createFairShare(options: { pace: StorePace; clock: Clock }): FairShare {
  const { pace, clock } = options;
  const sharing = createSharing(clock);
  const here = new Map<TenantId, number>();
  const closing = new AbortController();
  const manyUntil = new Map<TenantId, number>();
  let waiting: ((admission: Admission) => void)[] = [];
  let atWork = 0;
  /** Between two ends of turns, on average, ms; and when the last one of those that wait can be expected to begin. */
  let betweenMs = SOONEST_MS;
  let endedAt = clock.monotonic();
  let lastAt = Number.NEGATIVE_INFINITY;
  let isLooking = false;

  function letIn(): void {
    while (waiting.length > 0 && (atWork < Math.max(1, pace.limit(atWork)) || !sharing.isShared())) {
      atWork += 1;
      waiting.shift()?.(BEGIN);
    }
    if (waiting.length > 0 && !isLooking) void lookAgain();
  }

  async function lookAgain(): Promise<void> {
    isLooking = true;
    await clock.sleep(LOOK_EVERY_MS, closing.signal);
    isLooking = false;
    letIn();
  }

  function hasMany(tenant: TenantId, count: number): boolean {
    const now = clock.monotonic();
    if (count > FEW) manyUntil.set(tenant, now + MANY_FOR_MS);
    const until = manyUntil.get(tenant);
    if (until === undefined) return false;
    if (now < until) return true;
    manyUntil.delete(tenant);
    return false;
  }

  function later(): Admission {
    const now = clock.monotonic();
    lastAt = Math.min(Math.max(now + SOONEST_MS, lastAt + betweenMs), now + LATEST_MS);
    return { kind: 'later', inMs: lastAt - now };
  }

  function noteEnd(): void {
    const now = clock.monotonic();
    betweenMs += WEIGHT * (Math.min(now - endedAt, LATEST_MS) - betweenMs);
    endedAt = now;
  }

  return {
    async enter(tenant) {
      sharing.note(tenant);
      if (closing.signal.aborted) return CLOSED;
      const count = here.get(tenant) ?? 0;
      const isFree = !hasMany(tenant, count + 1) || !sharing.isShared();
      if (!isFree && waiting.length >= MOST_WAITING) return later();
      here.set(tenant, count + 1);
      if (isFree) {
        atWork += 1;
        return BEGIN;
      }
      return new Promise((resolve) => {
        waiting.push(resolve);
        letIn();
      });
    },
    leave(tenant) {
      const left = (here.get(tenant) ?? 1) - 1;
      if (left > 0) here.set(tenant, left);
      else here.delete(tenant);
      atWork -= 1;
      noteEnd();
      letIn();
    },
    close() {
      closing.abort();
      for (const refuse of waiting) refuse(CLOSED);
      waiting = [];
    },
  };
}

/** Whether tenants share a process: two of them had something to do here one after the other, not long ago. */
interface Sharing {
  /** Records that the tenant has work here. */
  note(tenant: TenantId): void;
  isShared(): boolean;
}

const SHARED_MS = 10_000;

/** Actors of one tenant that begin at once beside other tenants: somebody who talks, and no flood. */
export const FEW = 4;

export function createSharing(clock: Pick<Clock, 'monotonic'>): Sharing {
  let last: TenantId | null = null;
  let until = Number.NEGATIVE_INFINITY;
  return {
    note(tenant) {
      if (tenant === last) return;
      if (last !== null) until = clock.monotonic() + SHARED_MS;
      last = tenant;
    },
    isShared: () => clock.monotonic() < until,
  };
}

/**
 * The concurrency a store keeps pace with, derived from its latency: beyond it each operation only waits for
 * the others. The limit goes up while the store answers about as fast as it ever did, and down when it does not, as with
 * the congestion windows of TCP Vegas (Brakmo and Peterson, 1995).
 */
export interface StorePace {
  /** Records the duration of an operation, ms. */
  took(ms: number): void;
  /** The limit, at least 1, given the current concurrency. */
  limit(running: number): number;
}

/** Weight of one operation in the moving average. */
const AVERAGE_WEIGHT = 0.05;
/** The store is too slow beyond this multiple of its best latency plus these ms. */
const SLOW_TIMES = 2;
const SLOW_MS = 2;
/** Minimum time between two changes of the limit, so that the effect of each shows. */
const CHANGE_EVERY_MS = 100;
const LESS = 0.7;
const MORE = 1.1;
/** The best is that of this time or the one before: a store that has become slower for good is no longer measured by it. */
const BEST_OF_MS = 600_000;

export function createStorePace(most: number, clock: Pick<Clock, 'monotonic'>): StorePace {
  let average: number | null = null;
  let best = { now: Infinity, before: Infinity, since: clock.monotonic() };
  let limit = most;
  let changedAt = Number.NEGATIVE_INFINITY;

  function isSlow(): boolean {
    const least = Math.min(best.now, best.before);
    return average !== null && average > least * SLOW_TIMES + SLOW_MS;
  }

  return {
    took(ms) {
      average = average === null ? ms : average + AVERAGE_WEIGHT * (ms - average);
      const now = clock.monotonic();
      if (now - best.since > BEST_OF_MS) best = { now: Infinity, before: best.now, since: now };
      best.now = Math.min(best.now, average);
    },
    limit(running) {
      const now = clock.monotonic();
      if (now - changedAt >= CHANGE_EVERY_MS) {
        changedAt = now;
        limit = isSlow() ? Math.max(1, Math.min(limit, running) * LESS) : Math.min(most, limit * MORE + 1);
      }
      return Math.floor(limit);
    },
  };
}
