import type { Clock } from '../base/clock.ts';
import type { TenantId, ConversationId } from '../events/index.ts';
import { createSharing } from '../base/slices.ts';

/**
 * Decides which wakes taken by a worker begin. While tenants share the worker, a busy tenant runs no more handlers at
 * once than the store can serve, so that other tenants stay as fast as before.
 *
 * Owns: the number of actors per tenant here, running or waiting. Does not own: the latency of the store.
 *  1. A wake begins at once if its tenant has at most `FEW` actors here, now and in the last `MANY_FOR_MS`, or if only one
 *     tenant uses the worker.
 *  2. All others begin in the order of their arrival while fewer than `pace.limit` run; one may always run.
 *  3. At most `MOST_WAITING` of these wait here, so that the worker has room for other tenants. The rest are postponed,
 *     each to the time at which it can be expected to begin.
 *  4. After `close` no waiting wake begins; each gets `closed`.
 */
export type Decision = { kind: 'begin' } | { kind: 'later'; inMs: number } | { kind: 'closed' };

export interface FairShare {
  /** When a wake of the tenant may begin. */
  enter(tenant: TenantId): Promise<Decision>;
  /** To be called after each `begin`. */
  leave(tenant: TenantId): void;
  /** Lets no more wakes begin. */
  close(): void;
}

/** Interval at which the pace is read, ms, because it changes. */
const LOOK_EVERY_MS = 50;
/** How long a tenant counts as busy after it had many actors here. */
const MANY_FOR_MS = 10_000;
const MOST_WAITING = 8;
const BEGIN: Decision = { kind: 'begin' };
const CLOSED: Decision = { kind: 'closed' };

/** The decision for the wakes that one worker has taken. */
export function createFairShare({ pace, clock }: { pace: StorePace; clock: Clock }): FairShare {
  const sharing = createSharing(clock);
  const here = new Map<TenantId, number>();
  const manyUntil = new Map<TenantId, number>();
  const postponement = createPostponement(clock);
  const closing = new AbortController();
  let waiting: ((decision: Decision) => void)[] = [];
  let running = 0;
  let isLooking = false;

  function letIn(): void {
    while (waiting.length > 0 && (running < Math.max(1, pace.limit(running)) || !sharing.isShared())) {
      running += 1;
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
    const isBusy = now < (manyUntil.get(tenant) ?? now);
    if (!isBusy) manyUntil.delete(tenant);
    return isBusy;
  }

  return {
    async enter(tenant) {
      sharing.note(tenant);
      if (closing.signal.aborted) return CLOSED;
      const count = here.get(tenant) ?? 0;
      const isFree = !hasMany(tenant, count + 1) || !sharing.isShared();
      if (!isFree && waiting.length >= MOST_WAITING) return { kind: 'later', inMs: postponement.nextMs() };
      here.set(tenant, count + 1);
      if (isFree) {
        running += 1;
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
      running -= 1;
      postponement.noteEnd();
      letIn();
    },
    close() {
      closing.abort();
      for (const refuse of waiting) refuse(CLOSED);
      waiting = [];
    },
  };
}

/** Limits of the time after which a postponed wake returns, ms. */
const SOONEST_MS = 250;
const LATEST_MS = 30_000;
/** Weight of one interval in the moving average. */
const INTERVAL_WEIGHT = 0.2;

/** Spaces postponed wakes at the average interval between two ends of turns. */
function createPostponement(clock: Clock) {
  let intervalMs = SOONEST_MS;
  let endedAt = clock.monotonic();
  let lastAt = Number.NEGATIVE_INFINITY;
  return {
    /** Delay of the next postponed wake. */
    nextMs(): number {
      const now = clock.monotonic();
      lastAt = Math.min(Math.max(now + SOONEST_MS, lastAt + intervalMs), now + LATEST_MS);
      return lastAt - now;
    },
    noteEnd(): void {
      const now = clock.monotonic();
      intervalMs += INTERVAL_WEIGHT * (Math.min(now - endedAt, LATEST_MS) - intervalMs);
      endedAt = now;
    },
  };
}

/** Number of actors of one tenant that begin at once beside other tenants: enough for a conversation. */
export const FEW = 4;

/**
 * The concurrency that a store can serve, derived from its latency. Above it, operations only wait for each other. The
 * limit rises while the latency is near its best and falls when it is not, like the congestion window of TCP Vegas
 * (Brakmo and Peterson, 1995).
 */
export interface StorePace {
  /** Records the duration of an operation, ms. */
  took(ms: number): void;
  /** The limit, at least 1, given the current concurrency. */
  limit(running: number): number;
}

/** Weight of one operation in the moving average. */
const AVERAGE_WEIGHT = 0.05;
/** The store is slow beyond this multiple of its best latency plus these ms. */
const SLOW_TIMES = 2;
const SLOW_MS = 2;
/** Minimum time between two changes of the limit, so that the effect of each can be measured. */
const CHANGE_EVERY_MS = 100;
const LESS = 0.7;
const MORE = 1.1;
/** The best latency is that of the last one or two such periods, ms: a store may become slower for good. */
const BEST_OF_MS = 600_000;

export function createStorePace(most: number, clock: Pick<Clock, 'monotonic'>): StorePace {
  let average: number | null = null;
  let best = { now: Infinity, before: Infinity, since: clock.monotonic() };
  let limit = most;
  let changedAt = Number.NEGATIVE_INFINITY;

  const isSlow = () => (average ?? 0) > Math.min(best.now, best.before) * SLOW_TIMES + SLOW_MS;

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

/** Items are pushed to `[tenant, family]`; `shift` takes the next item of the next tenant that `may` accepts. */
interface FairQueue<T> {
  push(item: T, path: readonly [tenant: string, family: string]): void;
  shift(may?: (tenant: string) => boolean): T | undefined;
  size(): number;
  /** Number of waiting items of one tenant. */
  sizeOf(tenant: string): number;
}

/** First in, first out. An array's own `shift` is linear once the array is large. */
interface Line<T> {
  first: Place<T> | null;
  last: Place<T> | null;
}

interface Place<T> {
  item: T;
  next: Place<T> | null;
}

function append<T>(line: Line<T>, item: T): void {
  const place: Place<T> = { item, next: null };
  if (line.last) line.last.next = place;
  else line.first = place;
  line.last = place;
}

function take<T>(line: Line<T>): T | undefined {
  const { first } = line;
  if (!first) return undefined;
  line.first = first.next;
  if (!first.next) line.last = null;
  return first.item;
}

interface Family<T> {
  name: string;
  items: Line<T>;
}

interface Tenant<T> {
  name: string;
  size: number;
  families: Map<string, Family<T>>;
  /** The families in the order in which they take turns. */
  turns: Line<Family<T>>;
}

/** Maximum number of tenants asked in one `shift`. */
const MOST_ASKED = 64;

/**
 * A queue in which tenants take turns, and so do the families of each tenant: a long backlog of one delays the others
 * by one turn only. Within a family it is first in, first out. Every operation takes constant time. The queue knows a
 * tenant or family only while items of it wait, and then has it among the turns once.
 */
export function createFairQueue<T>(): FairQueue<T> {
  const tenants = new Map<string, Tenant<T>>();
  const turns: Line<Tenant<T>> = { first: null, last: null };
  let size = 0;

  return {
    push(item, [name, familyName]) {
      let tenant = tenants.get(name);
      if (!tenant) {
        tenant = { name, size: 0, families: new Map(), turns: { first: null, last: null } };
        tenants.set(name, tenant);
        append(turns, tenant);
      }
      let family = tenant.families.get(familyName);
      if (!family) {
        family = { name: familyName, items: { first: null, last: null } };
        tenant.families.set(familyName, family);
        append(tenant.turns, family);
      }
      append(family.items, item);
      tenant.size += 1;
      size += 1;
    },
    shift(may) {
      for (let left = Math.min(tenants.size, MOST_ASKED); left > 0; left -= 1) {
        const tenant = take(turns)!;
        if (may && !may(tenant.name)) {
          append(turns, tenant);
          continue;
        }
        const family = take(tenant.turns)!;
        const item = take(family.items);
        if (family.items.first) append(tenant.turns, family);
        else tenant.families.delete(family.name);
        tenant.size -= 1;
        size -= 1;
        if (tenant.size > 0) append(turns, tenant);
        else tenants.delete(tenant.name);
        return item;
      }
      return undefined;
    },
    size: () => size,
    sizeOf: (tenant) => tenants.get(tenant)?.size ?? 0,
  };
}

/** A thread's id is that of the conversation in which its task began, plus this suffix. */
const THREAD = /^\.d-[0-9a-f]{12}$/;
const THREAD_LENGTH = '.d-0123456789ab'.length;

/**
 * The unit that takes turns within a tenant: a conversation with the threads of its delegated tasks. Derived from the
 * id, without a lookup. A conversation whose id only looks like that of a thread takes turns with the root; nothing
 * else follows.
 */
export function familyOf(conversation: ConversationId): string {
  let end = conversation.length;
  while (end >= THREAD_LENGTH && THREAD.test(conversation.slice(end - THREAD_LENGTH, end)))
    end -= THREAD_LENGTH;
  return conversation.slice(0, end);
}
