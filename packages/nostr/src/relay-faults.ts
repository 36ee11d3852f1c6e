import { type Clock, TokenBucket } from './troupe.ts';

export interface FaultLimits {
  /** Lies tolerated per minute. Default 20. */
  liesPerMinute: number;
  /** Useless frames per second. More than this for ten seconds counts as a flood. Default 200. */
  noisePerSecond: number;
  /** Time per minute for which the socket may be throttled, ms. Default 30,000. */
  throttledMsPerMinute: number;
  /** Stalled connections in a row that count as a fault. Default 3. */
  stalls: number;
  /** Length of an isolation, ms: four times as long each time, up to `most`. */
  isolationMs: { first: number; most: number };
}

export const DEFAULT_FAULT_LIMITS: FaultLimits = {
  liesPerMinute: 20,
  noisePerSecond: 200,
  throttledMsPerMinute: 30_000,
  stalls: 3,
  isolationMs: { first: 60_000, most: 3_600_000 },
};

/** Why a relay is isolated. */
export type Fault = 'lies' | 'floods' | 'stalls';

const MINUTE_S = 60;

/** Counts the recent faults of a relay and decides how long it is isolated. */
export class RelayFaults {
  readonly #limits: FaultLimits;
  readonly #clock: Clock;
  #lies: TokenBucket;
  #noise: TokenBucket;
  #throttled: TokenBucket;
  #stalls = 0;
  #isolations = 0;
  #endedAt: number | null = null;

  constructor(limits: FaultLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    [this.#lies, this.#noise, this.#throttled] = this.#buckets();
  }

  /** Returns null while the number of refusals is tolerated. */
  refused(reason: Refused): Fault | null {
    const weight = REFUSED[reason];
    if (weight === 'lie' && this.#lies.take() > 0) return 'lies';
    if (weight === 'noise' && this.#noise.take() > 0) return 'floods';
    return null;
  }

  throttled(ms: number): Fault | null {
    return this.#throttled.take(ms) > 0 ? 'floods' : null;
  }

  stalled(): Fault | null {
    this.#stalls += 1;
    return this.#stalls >= this.#limits.stalls ? 'stalls' : null;
  }

  answered(): void {
    this.#stalls = 0;
  }

  /** Returns the length of the isolation, ms. After an equally long time without a fault, the first length counts again. */
  isolate(): number {
    const { first, most } = this.#limits.isolationMs;
    const now = this.#clock.monotonic();
    const lastMs = Math.min(most, first * 4 ** (this.#isolations - 1));
    if (this.#endedAt !== null && now - this.#endedAt > lastMs) this.#isolations = 0;
    const ms = Math.min(most, first * 4 ** this.#isolations);
    this.#isolations += 1;
    this.#endedAt = now + ms;
    this.#stalls = 0;
    [this.#lies, this.#noise, this.#throttled] = this.#buckets();
    return ms;
  }

  #buckets(): [TokenBucket, TokenBucket, TokenBucket] {
    const clock = this.#clock;
    const { liesPerMinute, noisePerSecond, throttledMsPerMinute } = this.#limits;
    return [
      new TokenBucket({ perSecond: liesPerMinute / MINUTE_S, burst: liesPerMinute, clock }),
      new TokenBucket({ perSecond: noisePerSecond, burst: noisePerSecond * 10, clock }),
      new TokenBucket({ perSecond: throttledMsPerMinute / MINUTE_S, burst: throttledMsPerMinute, clock }),
    ];
  }
}

/**
 * Why an event or frame is refused, and what that tells about the relay. A closed list.
 *   lie    Never sent by a relay that checks its events. A few per minute isolate it.
 *   noise  Useless. A great many count as a flood.
 *   none   Any author can make an honest relay send this.
 */
const REFUSED = {
  /** Not JSON, nested too deeply, or not a frame of NIP-01. */
  json: 'lie',
  depth: 'lie',
  frame: 'lie',
  /** Not the seven fields of NIP-01. */
  shape: 'lie',
  /** The id is not the hash of the event. */
  id: 'lie',
  signature: 'lie',
  /**
   * Not requested: no subscription, another kind, beyond the limit, or for none of our agents. Also notices, answers to no
   * request, and challenges beyond a few.
   */
  unasked: 'noise',
  /** Sent by this relay before. */
  repeated: 'noise',
  size: 'noise',
  /** Too many tags. */
  tags: 'none',
  /** Dated too far ahead. */
  future: 'none',
  /** Its author exceeds their rate. */
  rate: 'none',
  /** Our own event: signed by one of our agents. */
  echo: 'none',
  /** The settings ignore its author. */
  stranger: 'none',
  /** Refused by the troupe: for example too long, or its conversation is archived. */
  troupe: 'none',
} as const;
export type Refused = keyof typeof REFUSED;
