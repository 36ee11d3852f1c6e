import { type Clock, TokenBucket } from './troupe.ts';

export interface FaultLimits {
  /** So many lies in a minute are one too many. Default 20. */
  liesPerMinute: number;
  /** Over so many useless frames a second, for ten seconds, it is a flood. Default 200. */
  noisePerSecond: number;
  /** So long in a minute the socket may be left unread because too much comes. Default 30 s. */
  throttledMsPerMinute: number;
  /** So many connections in a row may fall silent. Default 3. */
  stalls: number;
  /** How long a relay is left alone: four times as long each time, up to the most. */
  isolationMs: { first: number; most: number };
}

export const DEFAULT_FAULT_LIMITS: FaultLimits = {
  liesPerMinute: 20,
  noisePerSecond: 200,
  throttledMsPerMinute: 30_000,
  stalls: 3,
  isolationMs: { first: 60_000, most: 3_600_000 },
};

/** Why a relay is left alone. */
export type Fault = 'lies' | 'floods' | 'stalls';

const MINUTE_S = 60;

/** What a relay has done wrong lately, and for how long it is left alone for it. */
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

  /** What is wrong with a relay by now, null while it can be borne. */
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

  /** How long it is left alone now. A relay that then behaves for as long again begins anew. */
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
 * Why something that a relay sent is not taken, and what it says of the relay. A closed list.
 *   lie    No relay that checks what it passes on sends this: a few in a minute, and it is isolated.
 *   noise  Nothing was gained by it: a great many of them are a flood.
 *   none   Anybody can make an honest relay send this.
 */
const REFUSED = {
  /** Not JSON, nested too deeply, or no frame of NIP-01. */
  json: 'lie',
  depth: 'lie',
  frame: 'lie',
  /** Not the seven fields as NIP-01 has them. */
  shape: 'lie',
  /** The id is not the hash of the event. */
  id: 'lie',
  signature: 'lie',
  /**
   * Nobody asked for it: of no subscription, of another kind, more than the limit, or for no agent of ours. Notices,
   * answers to nothing and challenges beyond a few too.
   */
  unasked: 'noise',
  /** This relay has sent it before. */
  repeated: 'noise',
  size: 'noise',
  /** More tags than are read. */
  tags: 'none',
  /** Dated too far ahead. */
  future: 'none',
  /** Its author says too much at once. */
  rate: 'none',
  /** Signed by one of our agents: our own word, brought back. */
  echo: 'none',
  /** Words of somebody whom the settings say to ignore. */
  stranger: 'none',
  /** The troupe does not take it: too long, say, or its conversation is archived. */
  troupe: 'none',
} as const;
export type Refused = keyof typeof REFUSED;
