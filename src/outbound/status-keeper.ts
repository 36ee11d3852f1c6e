import type { Clock } from '../clock.ts';
import type { Event } from '../events/index.ts';
import type { KeyValue } from '../key-value.ts';
import { type FollowerStatus, MAX_ASKED_MS } from './follower.ts';
import { changeWebhookStatus, type WebhookStatus } from './webhook-status.ts';

/** What went well is written down together, at most so often. */
const FLUSH_MS = 5_000;
/** Where no try has failed for so long, none was made: nothing was there to send, or no process ran. */
const QUIET_MS = 2 * MAX_ASKED_MS;
/** How all is well. */
const WELL = { failingSince: null, failedAt: null, lastError: null, retryAt: null, behind: 0 } as const;

/**
 * Keeps the figures of one webhook. Failures and refusals are written at once, deliveries now and then; if the process
 * dies before, they are not counted.
 */
export class StatusKeeper {
  readonly #notes: KeyValue;
  readonly #id: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #onWarning: (error: unknown, where: string) => void;
  #uncounted = 0;
  #deliveredAt = 0;
  #flushedAt = 0;
  /** Whether the note says that it fails; null: not known. */
  #isFailing: boolean | null = null;
  /** Writes come one after the other. */
  #written: Promise<unknown> = Promise.resolve();

  constructor(
    notes: KeyValue,
    id: string,
    clock: Pick<Clock, 'now'>,
    onWarning: (error: unknown, where: string) => void,
  ) {
    this.#notes = notes;
    this.#id = id;
    this.#clock = clock;
    this.#onWarning = onWarning;
  }

  async delivered(): Promise<void> {
    this.#uncounted += 1;
    this.#deliveredAt = this.#clock.now();
    const isDue = this.#isFailing !== false || this.#deliveredAt - this.#flushedAt >= FLUSH_MS;
    if (isDue) await this.flush();
  }

  /** Returns since when tries have failed; time in which none was made does not count. */
  async failed(why: string): Promise<number> {
    const now = this.#clock.now();
    this.#isFailing = true;
    const status = await this.#change((stored) => {
      const goesOn = stored.failedAt !== null && now - stored.failedAt <= QUIET_MS;
      const failingSince = goesOn ? (stored.failingSince ?? now) : now;
      return { ...stored, failingSince, failedAt: now, lastError: why };
    });
    return status?.failingSince ?? now;
  }

  async waits({ behind, retryAt }: FollowerStatus): Promise<void> {
    await this.#change((stored) => ({ ...stored, behind, retryAt }));
  }

  /** What is passed over was not taken: a receiver that refuses everything is failing. */
  async refused({ conversation, seq, id }: Event, reason: string): Promise<void> {
    const lastRefused = { conversation, seq, event: id, reason, at: this.#clock.now() };
    await this.#change((stored) => ({ ...stored, refused: stored.refused + 1, lastRefused, retryAt: null }));
  }

  /** Resolves when all that was said before is written. */
  async flush(): Promise<void> {
    const [count, deliveredAt] = [this.#uncounted, this.#deliveredAt];
    if (count === 0) return void (await this.#written);
    this.#uncounted = 0;
    this.#flushedAt = this.#clock.now();
    this.#isFailing = false;
    await this.#change((stored) => ({
      ...stored,
      ...WELL,
      delivered: stored.delivered + count,
      deliveredAt,
    }));
  }

  /** Figures hold nothing back: where they cannot be written, that is told. */
  #change(apply: (status: WebhookStatus) => WebhookStatus): Promise<WebhookStatus | null> {
    const written = this.#written.then(async () => {
      try {
        return await changeWebhookStatus(this.#notes, this.#id, apply);
      } catch (error) {
        this.#onWarning(error, `figures of webhook/${this.#id}`);
        return null;
      }
    });
    this.#written = written;
    return written;
  }
}
