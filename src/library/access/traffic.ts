import type { Clock } from '../../base/clock.ts';
import { type Slices, slicesOf } from '../../base/slices.ts';
import { type Author, DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { KeyedBuckets } from '../../base/token-bucket.ts';
import { LOCAL, type Principal } from './principal.ts';
import { type ReadLimits, Reads } from './reads.ts';
import { Turnstile } from './turnstile.ts';

const MIB = 1_024 * 1_024;
/** Bytes of unfinished bodies. A tenant other than `default` leaves half to others. */
const MOST_BYTES = { caller: 128 * MIB, tenant: 256 * MIB, process: 512 * MIB };

export type BodyBounds = typeof MOST_BYTES;

/** The owner whose limit is reached, and the limit in bytes. */
export interface Full {
  full: keyof BodyBounds;
  limit: number;
}

/** Account of the bytes of one body. */
export interface HeldBody {
  /** Null if there is room for the bytes. */
  grow(bytes: number): Full | null;
  end(): void;
}

/**
 * Limits the memory of unfinished bodies: each may take minutes to arrive, and many arrive at once. Owns the sums. The
 * caller that opens a body ends it.
 */
export class Bodies {
  readonly #most: BodyBounds;
  readonly #callers = new Map<string, number>();
  readonly #tenants = new Map<TenantId, number>();
  #all = 0;

  constructor(most: BodyBounds = MOST_BYTES) {
    this.#most = most;
  }

  open({ tenant, id }: Principal): HeldBody {
    const caller = `${tenant} ${id}`;
    let held = 0;
    const add = (bytes: number) => {
      held += bytes;
      this.#all += bytes;
      addTo(this.#callers, caller, bytes);
      addTo(this.#tenants, tenant, bytes);
    };
    return {
      grow: (bytes) => {
        const after: BodyBounds = {
          caller: (this.#callers.get(caller) ?? 0) + bytes,
          tenant: tenant === DEFAULT_TENANT ? 0 : (this.#tenants.get(tenant) ?? 0) + bytes,
          process: this.#all + bytes,
        };
        const full = (['caller', 'tenant', 'process'] as const).find((of) => after[of] > this.#most[of]);
        if (full !== undefined) return { full, limit: this.#most[full] };
        add(bytes);
        return null;
      },
      end: () => add(-held),
    };
  }
}

function addTo<K>(sums: Map<K, number>, key: K, bytes: number): void {
  const sum = (sums.get(key) ?? 0) + bytes;
  if (sum > 0) sums.set(key, sum);
  else sums.delete(key);
}

/** Rates per second, with bursts of three to five seconds' worth. */
export interface TrafficLimits extends ReadLimits {
  /** Requests a second per caller. Default 100. */
  requestsPerSecond?: number | undefined;
  /** Messages a second per author of a tenant. Default 20. */
  messagesPerSecond?: number | undefined;
  /** Open streams of one caller. Default 50. */
  streams?: number | undefined;
  /** Open streams of one tenant other than `default`. Default: half of `allStreams`. */
  tenantStreams?: number | undefined;
  /** Open streams of the process. Default 1,000. */
  allStreams?: number | undefined;
}

const REQUEST_BURST_S = 3;
const MESSAGE_BURST_S = 5;

/**
 * Rate limits of one process. Owns the callers' recent requests and open streams.
 *  1. A refused request costs only the check, and its error says when to try again.
 *  2. Limits are per caller, except for the streams of a tenant and of the whole process.
 *  3. A tenant can create any number of keys, so the limit on streams is also per tenant. `default` is the server's own.
 *  4. `local` is the only user of this machine, or an application that checks its callers: its rates are not limited.
 */
export class Traffic {
  readonly bodies = new Bodies();
  readonly reads: Reads;
  readonly turnstile: Turnstile;
  /** Schedules long work among requests. */
  readonly slices: Slices;
  /** The limits, for error messages. */
  readonly limits: { requestsPerSecond: number; messagesPerSecond: number };
  readonly #requests: KeyedBuckets;
  readonly #messages: KeyedBuckets;
  readonly #streams = new Map<string, number>();
  readonly #tenants = new Map<TenantId, number>();
  readonly #perCaller: number;
  readonly #perTenant: number;
  readonly #perProcess: number;
  #open = 0;

  constructor(limits: TrafficLimits, clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.reads = new Reads(limits, clock);
    this.turnstile = new Turnstile(clock);
    this.slices = slicesOf(clock);
    const { requestsPerSecond = 100, messagesPerSecond = 20, streams = 50, allStreams = 1_000 } = limits;
    this.limits = { requestsPerSecond, messagesPerSecond };
    this.#requests = new KeyedBuckets({
      perSecond: requestsPerSecond,
      burst: Math.max(1, requestsPerSecond * REQUEST_BURST_S),
      clock,
    });
    this.#messages = new KeyedBuckets({
      perSecond: messagesPerSecond,
      burst: Math.max(1, messagesPerSecond * MESSAGE_BURST_S),
      clock,
    });
    this.#perCaller = streams;
    this.#perTenant = limits.tenantStreams ?? Math.ceil(allStreams / 2);
    this.#perProcess = allStreams;
  }

  /** 0, or the ms after which the caller may try again. */
  request(caller: Principal): number {
    return isLocal(caller) ? 0 : this.#requests.take(`${caller.tenant} ${caller.id}`);
  }

  /** 0, or the ms after which the author may write again. */
  message(caller: Principal, tenant: TenantId, { kind, id }: Author): number {
    return isLocal(caller) ? 0 : this.#messages.take(`${tenant} ${kind} ${id}`);
  }

  /** Opens a stream. Returns its `end`, which is idempotent, or the limit that is reached. */
  openStream(
    caller: Principal,
  ): { end: () => void } | { full: 'caller' | 'tenant' | 'process'; limit: number } {
    const { tenant } = caller;
    const key = `${caller.tenant} ${caller.id}`;
    const open = this.#streams.get(key) ?? 0;
    if (this.#open >= this.#perProcess) return { full: 'process', limit: this.#perProcess };
    if (!isLocal(caller) && open >= this.#perCaller) return { full: 'caller', limit: this.#perCaller };
    const ofTenant = this.#tenants.get(tenant) ?? 0;
    if (tenant !== DEFAULT_TENANT && ofTenant >= this.#perTenant)
      return { full: 'tenant', limit: this.#perTenant };
    this.#open += 1;
    this.#streams.set(key, open + 1);
    this.#tenants.set(tenant, ofTenant + 1);
    let isOpen = true;
    return {
      end: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#open -= 1;
        countDown(this.#streams, key);
        countDown(this.#tenants, tenant);
      },
    };
  }
}

function countDown<K>(counts: Map<K, number>, key: K): void {
  const left = (counts.get(key) ?? 1) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}

function isLocal({ id }: Principal): boolean {
  return id === LOCAL.id;
}
