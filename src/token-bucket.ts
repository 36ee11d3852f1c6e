import type { Clock } from './clock.ts';

export interface BucketOptions {
  perSecond: number;
  /** What may come at once after a pause. Default: what one second gives, at least 1. */
  burst?: number | undefined;
  clock: Pick<Clock, 'monotonic'>;
}

/** So many a second, and a few at once: whoever takes more is told when to come again. */
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

  /** 0 if `n` were taken, else the ms after which they could be; then nothing was taken. */
  take(n = 1): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
    if (this.#tokens < n) return Math.ceil((n - this.#tokens) / this.#perMs);
    this.#tokens -= n;
    return 0;
  }

  /** Takes what has been used already, on credit where need be; no more than a burst is owed. */
  spend(n: number): void {
    this.take(0);
    this.#tokens = Math.max(-this.#burst, this.#tokens - n);
  }

  /** How many ms it is until nothing is owed. */
  debtMs(): number {
    this.take(0);
    return this.#tokens >= 0 ? 0 : Math.max(1, Math.ceil(-this.#tokens / this.#perMs));
  }
}

/** A bucket for each key. Bounded: of too many the one used least recently is forgotten, and begins anew. */
export class KeyedBuckets {
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #options: BucketOptions;
  readonly #maxKeys: number;

  constructor(options: BucketOptions, maxKeys = 10_000) {
    this.#options = options;
    this.#maxKeys = maxKeys;
  }

  take(key: string, n = 1): number {
    return this.#bucketOf(key).take(n);
  }

  spend(key: string, n: number): void {
    this.#bucketOf(key).spend(n);
  }

  /** Of a key that is not remembered: nothing. */
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
