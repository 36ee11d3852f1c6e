import type { Clock } from './clock.ts';

interface BucketOptions {
  /** Tokens a second. */
  perSecond: number;
  /** Most tokens after a pause. Default: `perSecond`, at least 1. */
  burst?: number | undefined;
  /** Source of time. Default: the clock of the system. */
  clock: Pick<Clock, 'monotonic'>;
}

/** Limits a rate, with bursts. A refused caller gets the time after which to try again. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  readonly #clock: BucketOptions['clock'];
  #tokens: number;
  #at: number;

  constructor({ perSecond, burst, clock }: BucketOptions) {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst ?? Math.max(1, perSecond);
    this.#clock = clock;
    this.#tokens = this.#burst;
    this.#at = clock.monotonic();
  }

  /** Takes `n` tokens and returns 0, or takes none and returns the ms until `n` are there. */
  take(n = 1): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
    if (this.#tokens < n) return Math.ceil((n - this.#tokens) / this.#perMs);
    this.#tokens -= n;
    return 0;
  }

  /** Takes tokens for work already done, even if there are too few. The debt is at most one burst. */
  spend(n: number): void {
    this.take(0);
    this.#tokens = Math.max(-this.#burst, this.#tokens - n);
  }

  /** Ms until the debt is paid. 0: there is none. */
  debtMs(): number {
    this.take(0);
    return this.#tokens >= 0 ? 0 : Math.max(1, Math.ceil(-this.#tokens / this.#perMs));
  }
}

/** One bucket per key. Beyond `maxKeys` the least recently used bucket is dropped; its key then starts with a full bucket. */
export class KeyedBuckets {
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #options: BucketOptions;
  readonly #maxKeys: number;

  constructor(options: BucketOptions, maxKeys = 10_000) {
    this.#options = options;
    this.#maxKeys = maxKeys;
  }

  /** Takes tokens. False: there are too few. */
  take(key: string, n = 1): number {
    return this.#bucketOf(key).take(n);
  }

  /** Takes tokens, even if there are too few. */
  spend(key: string, n: number): void {
    this.#bucketOf(key).spend(n);
  }

  /** Ms until the debt of the key is paid. 0 for an unknown key. */
  debtMs(key: string): number {
    return this.#buckets.get(key)?.debtMs() ?? 0;
  }

  #bucketOf(key: string): TokenBucket {
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#options);
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#maxKeys) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return bucket;
  }
}
