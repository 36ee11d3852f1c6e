import type { Clock } from '../../base/clock.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { KeyedBuckets } from '../../base/token-bucket.ts';
import { onAccount, type WorkAccount } from '../../base/work.ts';
import { LOCAL, type Principal } from './principal.ts';

export interface ReadLimits {
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
const AT_ONCE = 8;
const MOST_WAITING = 32;
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
 *  3. A queue holds at most `MOST_WAITING` reads. Further ones are refused with the time to try again.
 *  4. `local` is the only user of this machine, and is not charged.
 */
export class Reads {
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
    const { workPerSecond = 20_000, tenantWorkPerSecond = 2 * workPerSecond, dearReads = 4 } = limits;
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
    if (lane.waiting.length >= MOST_WAITING) return { retryAfterMs: Math.max(1_000, debtMs) };
    if (lane.waiting.length === 0 && lane.running < AT_ONCE && debtMs === 0) lane.running += 1;
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
    while (debtMs === 0 && lane.running < AT_ONCE) {
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
