import type { Clock } from '../../base/clock.ts';
import { type Slices, slicesOf, createSharing } from '../../base/slices.ts';
import { type Author, DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { KeyedBuckets } from '../../base/token-bucket.ts';
import { LOCAL, type Principal } from './keys.ts';
import { onAccount, type WorkAccount } from '../../base/work.ts';

const MIB = 1_024 * 1_024;
/** Most bytes of unfinished bodies. A tenant other than `default` leaves half to others. */
const MOST_BYTES = { caller: 128 * MIB, tenant: 256 * MIB, process: 512 * MIB };

type BodyBounds = typeof MOST_BYTES;

/** The owner whose limit is reached, and the limit in bytes. */
export interface Full {
  /** What is full. */
  full: keyof BodyBounds;
  /** How many there may be. */
  limit: number;
}

/** Account of the bytes of one body. */
export interface HeldBody {
  /** Null if there is room for the bytes. */
  grow(bytes: number): Full | null;
  /** Gives the place back. */
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

  /** Bodies that are being read. */
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
  /** Attempts a second per address with credentials that were not recently valid. Default 20. */
  triesPerSecond?: number | undefined;
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

/** The limits without a setting. */
export const TRAFFIC = {
  triesPerSecond: 20,
  requestsPerSecond: 100,
  messagesPerSecond: 20,
  workPerSecond: 20_000,
  streams: 50,
  allStreams: 1_000,
} satisfies TrafficLimits;

/** A multiple of all limits: `access.limits` of a definition. */
export function trafficTimes(factor = 1): TrafficLimits {
  return Object.fromEntries(
    Object.entries(TRAFFIC).map(([name, limit]) => [name, Math.ceil(limit * factor)]),
  );
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
  /** Bodies of requests that are being read. */
  readonly bodies = new Bodies();
  /** Expensive reads. */
  readonly reads: Reads;
  /** Attempts, requests, messages and work per second. */
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
    const {
      requestsPerSecond = TRAFFIC.requestsPerSecond,
      messagesPerSecond = TRAFFIC.messagesPerSecond,
      streams = TRAFFIC.streams,
      allStreams = TRAFFIC.allStreams,
      tenantStreams = Math.ceil(allStreams / 2),
    } = limits;
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
    this.#perTenant = tenantStreams;
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

interface ReadLimits {
  /** Units of work of one caller, see `work.ts`. Default 20,000. */
  workPerSecond?: number | undefined;
  /** Per tenant other than `default`. Default: twice that of a caller. */
  tenantWorkPerSecond?: number | undefined;
  /** Concurrent expensive reads in the process; a caller or tenant may have half of them. Default 4. */
  dearReads?: number | undefined;
}

/** An admitted request that reads. */
export interface Reading extends WorkAccount {
  /** For reads that continue after the answer, such as streams: charged, and delayed while the caller is in debt. */
  paced<T>(source: AsyncGenerator<T, void>, signal?: AbortSignal): AsyncGenerator<T, void>;
  /** May be called repeatedly. */
  end(): void;
}

/** Size of a burst, in seconds of the rate, so that a long conversation can be read at once. */
const BURST_S = 10;
/** Concurrent reads of a caller, and the number that may wait. */
const READS_AT_ONCE = 8;
const MOST_READS_WAITING = 32;
/** Longest wait before a read is refused. */
const LONGEST_WAIT_MS = 30_000;
/** Units from which a read counts as expensive. */
const DEAR = 5_000;

interface Lane {
  caller: string;
  tenant: TenantId;
  running: number;
  waiting: { since: number; go: (isLetIn: boolean) => void }[];
  dear: number;
  isTimed: boolean;
}

/**
 * Limits the time that callers spend on reads. Owns their recent spending and their queues.
 *  1. A read is charged for its work while it runs. A caller that has spent too much waits in its own queue until it
 *     is within its rate again; other callers are not delayed.
 *  2. Expensive reads continue only in one of a few places, and no caller or tenant can have all of them.
 *  3. A queue holds at most `MOST_READS_WAITING` reads. Further ones are refused with the time to try again.
 *  4. `local` is the only user of this machine, and is not charged.
 */
class Reads {
  /** The limits, for error messages. */
  readonly limits: { workPerSecond: number };
  readonly #callers: KeyedBuckets;
  readonly #tenants: KeyedBuckets;
  readonly #lanes = new Map<string, Lane>();
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly #places: number;
  /** Expensive reads that wait for a place, in order of arrival. */
  readonly #dearWaiting: { lane: Lane; go: () => void }[] = [];
  readonly #dearOf = new Map<TenantId, number>();
  #dear = 0;
  #isTimed = false;

  constructor(limits: ReadLimits, clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    const {
      workPerSecond = TRAFFIC.workPerSecond,
      tenantWorkPerSecond = 2 * workPerSecond,
      dearReads = 4,
    } = limits;
    this.limits = { workPerSecond };
    this.#clock = clock;
    this.#places = dearReads;
    this.#callers = new KeyedBuckets({ perSecond: workPerSecond, burst: workPerSecond * BURST_S, clock });
    this.#tenants = new KeyedBuckets({
      perSecond: tenantWorkPerSecond,
      burst: tenantWorkPerSecond * BURST_S,
      clock,
    });
  }

  /** Waits for the caller's turn, or returns after how many ms it may try again. */
  async begin({ id, tenant }: Principal): Promise<Reading | { retryAfterMs: number }> {
    if (id === LOCAL.id) return FREE;
    const lane = this.#laneOf(`${tenant} ${id}`, tenant);
    const debtMs = this.#debtMs(lane);
    if (lane.waiting.length >= MOST_READS_WAITING) return { retryAfterMs: Math.max(1_000, debtMs) };
    if (lane.waiting.length === 0 && lane.running < READS_AT_ONCE && debtMs === 0) lane.running += 1;
    else {
      const isLetIn = await new Promise<boolean>((go) => {
        lane.waiting.push({ since: this.#clock.monotonic(), go });
        this.#letIn(lane);
      });
      if (!isLetIn) {
        this.#leave(lane);
        return { retryAfterMs: Math.max(1_000, this.#debtMs(lane)) };
      }
    }
    return this.#reading(lane);
  }

  #reading(lane: Lane): Reading {
    let spent = 0;
    let state: 'cheap' | 'waiting' | 'dear' | 'ended' = 'cheap';
    const pay = (units: number) => {
      spent += units;
      this.#callers.spend(lane.caller, units);
      if (lane.tenant !== DEFAULT_TENANT) this.#tenants.spend(lane.tenant, units);
    };
    const inDebt = () => this.#debtMs(lane);
    const clock = this.#clock;
    return {
      charge: (units) => {
        pay(units);
        if (state !== 'cheap' || spent < DEAR) return undefined;
        state = 'waiting';
        return new Promise((resolve) => {
          const go = () => {
            // The request may have been answered meanwhile.
            if (state === 'ended') this.#giveBack(lane);
            else state = 'dear';
            resolve();
          };
          this.#dearWaiting.push({ lane, go });
          this.#letOn();
        });
      },
      async *paced(source, signal) {
        const account: WorkAccount = {
          charge(units) {
            pay(units);
            return undefined;
          },
        };
        try {
          for (;;) {
            for (let ms = inDebt(); ms > 0 && !signal?.aborted; ms = inDebt()) await clock.sleep(ms, signal);
            const next = await onAccount(account, () => source.next());
            if (next.done) return;
            yield next.value;
          }
        } finally {
          await source.return();
        }
      },
      end: () => {
        if (state === 'ended') return;
        if (state === 'dear') this.#giveBack(lane);
        state = 'ended';
        lane.running -= 1;
        this.#letIn(lane);
        this.#leave(lane);
      },
    };
  }

  /** Starts the caller's waiting reads in order, while the caller is not in debt. */
  #letIn(lane: Lane): void {
    const now = this.#clock.monotonic();
    while (now - (lane.waiting[0]?.since ?? now) > LONGEST_WAIT_MS) lane.waiting.shift()?.go(false);
    const debtMs = this.#debtMs(lane);
    while (debtMs === 0 && lane.running < READS_AT_ONCE) {
      const next = lane.waiting.shift();
      if (!next) return;
      lane.running += 1;
      next.go(true);
    }
    if (debtMs === 0 || lane.waiting.length === 0 || lane.isTimed) return;
    lane.isTimed = true;
    void this.#clock.sleep(debtMs).then(() => {
      lane.isTimed = false;
      this.#letIn(lane);
    });
  }

  /** Gives free places to the waiting expensive reads that may have one, in order of arrival. */
  #letOn(): void {
    let earliest = Infinity;
    for (let index = 0; index < this.#dearWaiting.length && this.#dear < this.#places;) {
      const { lane, go } = this.#dearWaiting[index]!;
      const debtMs = this.#debtMs(lane);
      if (debtMs > 0) earliest = Math.min(earliest, debtMs);
      if (debtMs > 0 || !this.#hasPlace(lane)) {
        index += 1;
        continue;
      }
      this.#dearWaiting.splice(index, 1);
      this.#dear += 1;
      lane.dear += 1;
      this.#dearOf.set(lane.tenant, (this.#dearOf.get(lane.tenant) ?? 0) + 1);
      go();
    }
    if (earliest === Infinity || this.#isTimed) return;
    this.#isTimed = true;
    void this.#clock.sleep(earliest).then(() => {
      this.#isTimed = false;
      this.#letOn();
    });
  }

  #hasPlace({ dear, tenant }: Lane): boolean {
    const share = Math.max(1, Math.floor(this.#places / 2));
    return dear < share && (tenant === DEFAULT_TENANT || (this.#dearOf.get(tenant) ?? 0) < share);
  }

  #giveBack(lane: Lane): void {
    this.#dear -= 1;
    lane.dear -= 1;
    const left = (this.#dearOf.get(lane.tenant) ?? 1) - 1;
    if (left > 0) this.#dearOf.set(lane.tenant, left);
    else this.#dearOf.delete(lane.tenant);
    this.#letOn();
  }

  #debtMs({ caller, tenant }: Lane): number {
    const ofTenant = tenant === DEFAULT_TENANT ? 0 : this.#tenants.debtMs(tenant);
    return Math.max(this.#callers.debtMs(caller), ofTenant);
  }

  #laneOf(caller: string, tenant: TenantId): Lane {
    const lane = this.#lanes.get(caller) ?? {
      caller,
      tenant,
      running: 0,
      waiting: [],
      dear: 0,
      isTimed: false,
    };
    this.#lanes.set(caller, lane);
    return lane;
  }

  #leave(lane: Lane): void {
    if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(lane.caller);
  }
}

const FREE: Reading = {
  charge: () => undefined,
  paced: (source) => source,
  end: () => undefined,
};

/** Most running requests of one tenant while other tenants have requests, too. */
const FEW = 8;
/** The same for a tenant that has recently had more of them, which counts as a flood. */
const AT_ONCE = 1;
const FLOOD_MS = 10_000;
/** Requests of one tenant that may wait. */
export const MOST_WAITING = 1_000;
/** Time after which a running request no longer delays those behind it, ms: it waits for something. */
const LONG_MS = 1_000;

interface Line {
  /** Null: unknown callers. */
  tenant: TenantId | null;
  /** When each request began, on the monotonic clock, by the function that ends it. */
  underWay: Map<() => void, number>;
  /** How many began in this turn of the event loop. Many also end in it, so that never two run at once. */
  begunInTurn: number;
  /** Begins the requests that wait, in their order. */
  waiting: (() => void)[];
  /** Time until which it counts as a flood, on the monotonic clock. */
  floodUntil: number;
  isWatched: boolean;
  isSliceRequested: boolean;
}

/**
 * Admits requests before anything is read or done for them, so that a tenant with hundreds of connections delays another
 * tenant's requests by no more than `AT_ONCE` of its own.
 *  1. While only one tenant uses the process, every request begins at once.
 *  2. Otherwise each tenant has `FEW` running requests, or `AT_ONCE` if it floods; its others wait in its own line.
 *  3. A request counts as running until its answer begins, it reports that it waits (for an agent, for a place), or
 *     `LONG_MS` have passed, and at least until the next turn of the event loop.
 *  4. Requests of a flood begin only when the event loop is idle (`slices.ts`): requests that are answered at once would
 *     otherwise follow each other without letting in a request of another tenant.
 *  5. Requests that will be refused wait, too: refusing them in a loop costs as much as serving them. Those of unknown
 *     callers (null) share a line, and do not count as another tenant.
 */
export class Turnstile {
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly #sharing;
  readonly #slices;
  readonly #lines = new Map<TenantId | null, Line>();

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
    this.#clock = clock;
    this.#sharing = createSharing(clock);
    this.#slices = slicesOf(clock);
  }

  /**
   * Waits for the tenant's turn. Returns the function that ends the request, which may be called repeatedly; null if
   * too many wait.
   */
  enter(tenant: TenantId | null): (() => void) | Promise<() => void> | null {
    if (tenant !== null) this.#sharing.note(tenant);
    const line = this.#lineOf(tenant);
    if (Math.max(placesTaken(line), line.waiting.length) >= FEW)
      line.floodUntil = this.#clock.monotonic() + FLOOD_MS;
    if (line.waiting.length === 0 && !this.#isPaced(line) && this.#mayBegin(line)) return this.#begin(line);
    if (line.waiting.length >= MOST_WAITING) return null;
    if (!line.isWatched) void this.#watch(line);
    return new Promise((resolve) => {
      line.waiting.push(() => resolve(this.#begin(line)));
      this.#letIn(line);
    });
  }

  #lineOf(tenant: TenantId | null): Line {
    const known = this.#lines.get(tenant);
    if (known) return known;
    const line: Line = {
      tenant,
      underWay: new Map(),
      begunInTurn: 0,
      waiting: [],
      floodUntil: -Infinity,
      isWatched: false,
      isSliceRequested: false,
    };
    this.#lines.set(tenant, line);
    return line;
  }

  #begin(line: Line): () => void {
    const leave = () => {
      if (!line.underWay.delete(leave)) return;
      this.#letIn(line);
    };
    line.underWay.set(leave, this.#clock.monotonic());
    if (this.#isBeside(line)) this.#countInTurn(line);
    return leave;
  }

  #countInTurn(line: Line): void {
    line.begunInTurn += 1;
    if (line.begunInTurn > 1) return;
    void this.#clock.sleep(0).then(() => {
      line.begunInTurn = 0;
      this.#letIn(line);
    });
  }

  #letIn(line: Line): void {
    while (line.waiting.length > 0 && this.#mayBegin(line)) {
      if (this.#isPaced(line)) return this.#requestSlice(line);
      line.waiting.shift()?.();
    }
    const isOver = placesTaken(line) + line.waiting.length === 0 && !this.#floods(line);
    if (isOver && this.#lines.get(line.tenant) === line) this.#lines.delete(line.tenant);
  }

  #requestSlice(line: Line): void {
    if (line.isSliceRequested) return;
    line.isSliceRequested = true;
    void this.#slices.next().then(() => {
      line.isSliceRequested = false;
      line.waiting.shift()?.();
      this.#letIn(line);
    });
  }

  /** Stops counting long requests as running while others wait behind them. */
  async #watch(line: Line): Promise<void> {
    line.isWatched = true;
    do {
      await this.#clock.sleep(LONG_MS);
      const long = this.#clock.monotonic() - LONG_MS;
      for (const [leave, since] of line.underWay) if (since <= long) leave();
    } while (line.waiting.length > 0);
    line.isWatched = false;
  }

  #mayBegin(line: Line): boolean {
    return !this.#isBeside(line) || placesTaken(line) < (this.#floods(line) ? AT_ONCE : FEW);
  }

  #isPaced(line: Line): boolean {
    return this.#isBeside(line) && this.#floods(line);
  }

  /** Whether other tenants use the process. */
  #isBeside({ tenant }: Line): boolean {
    return tenant === null || this.#sharing.isShared();
  }

  #floods({ floodUntil }: Line): boolean {
    return this.#clock.monotonic() < floodUntil;
  }
}

function placesTaken({ underWay, begunInTurn }: Line): number {
  return Math.max(underWay.size, begunInTurn);
}
