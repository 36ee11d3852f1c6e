import type { Queue } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import type { ActorAddress } from '../../events/index.ts';

interface StrayWakesDeps {
  queue: Queue<unknown>;
  clock: Clock;
  afterMs: number;
  addWake: (key: string, address: ActorAddress) => Promise<void>;
  warn: (error: unknown, where: string) => void;
}

const LOOK_EVERY_MS = 100;
const MAX_KNOWN = 10_000;
const SUSPECT_AFTER_MS = 1_000;
const SUSPICION_MS = 60_000;
/** BullMQ's errors for a job that a worker held and that has lost its list, its lock or its key. */
const LOST_JOB = /is not in the active state|Missing (?:lock|key) for job/;

/**
 * Finds jobs that swallow wakes and are never served. BullMQ merges a wake into the job that its deduplication key names.
 * If that job is in no list any more (a lost list, a half removed job), every later wake of the actor would vanish in it.
 * BullMQ itself recovers when the job is gone altogether.
 *
 * Owns the current job of each recently woken actor, and since when wakes merge into it. After `afterMs` the job is
 * inspected, even if it merely waits long; for `SUSPICION_MS` after a suspicious error already after `SUSPECT_AFTER_MS`.
 * One inspection runs at a time, and one starts every `LOOK_EVERY_MS` at most.
 */
export class StrayWakes {
  readonly #deps: StrayWakesDeps;
  readonly #jobs = new Map<string, { jobId: string; since: number }>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #suspectUntil = Number.NEGATIVE_INFINITY;
  #isLooking = false;

  constructor(deps: StrayWakesDeps) {
    this.#deps = deps;
  }

  suspect(error: unknown): void {
    if (!(error instanceof Error && LOST_JOB.test(error.message))) return;
    this.#suspectUntil = this.#deps.clock.monotonic() + SUSPICION_MS;
  }

  /** Records that a wake was added as, or merged into, this job. */
  noteAdded(key: string, address: ActorAddress, jobId: string): void {
    const { clock, afterMs } = this.#deps;
    const now = clock.monotonic();
    const job = this.#jobs.get(key);
    if (job?.jobId !== jobId) return this.#keep(key, { jobId, since: now });
    const waitedMs = now - job.since;
    const suspectAfterMs = now < this.#suspectUntil ? Math.min(SUSPECT_AFTER_MS, afterMs) : afterMs;
    if (waitedMs < suspectAfterMs || this.#isLooking || now - this.#lookedAt < LOOK_EVERY_MS) return;
    const isLate = waitedMs >= afterMs;
    if (isLate) job.since = now;
    this.#lookedAt = now;
    this.#isLooking = true;
    void this.#inspect(key, address, { jobId, isLate }).finally(() => (this.#isLooking = false));
  }

  #keep(key: string, job: { jobId: string; since: number }): void {
    this.#jobs.delete(key);
    this.#jobs.set(key, job);
    if (this.#jobs.size <= MAX_KNOWN) return;
    const [oldest] = this.#jobs.keys();
    if (oldest !== undefined) this.#jobs.delete(oldest);
  }

  async #inspect(key: string, address: ActorAddress, job: { jobId: string; isLate: boolean }): Promise<void> {
    const { queue, addWake, warn } = this.#deps;
    const { jobId, isLate } = job;
    try {
      const state = await queue.getJobState(jobId);
      if (state === 'prioritized') {
        // A wake that has waited long in a late lane moves to the plain queue.
        if (isLate) await queue.getBackend().changePriority(jobId, 0);
      } else if (state === 'unknown' || state === 'completed' || state === 'failed') {
        warn(`the wake ${jobId} of ${key} was in no list and swallowed all later ones: removed`, 'queue');
        await queue.getBackend().removeDeduplicationKey(key, jobId);
        await queue.remove(jobId);
        await addWake(key, address);
      }
    } catch (error) {
      warn(error, 'queue');
    }
  }
}
