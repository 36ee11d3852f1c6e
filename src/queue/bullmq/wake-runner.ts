import { DelayedError, type Job, WaitingError } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import { type ActorAddress, addressKey } from '../../events/index.ts';
import { createFairShare, type FairShare, type StorePace } from '../fair-share.ts';
import type { RouterObserver } from '../router-observer.ts';
import type { Service, WakeOutcome } from '../router.ts';
import { isDecodeError, LATER, readAddress, type WakeQueue } from './wake-queue.ts';

interface WakeRunnerDeps {
  queue: WakeQueue;
  pace: StorePace;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  observer: RouterObserver;
  warn: (error: unknown, where: string) => void;
  /** Calls a callback of the application; what it throws becomes a warning. */
  notify: (call: () => void) => void;
}

/** A job that a worker took, with the token of its lock. */
interface TakenJob {
  job: Job<unknown>;
  token: string;
}

const HOLD_BACK_MS = 100;
const HOLD_BACK_SPREAD_MS = 150;
const LATER_RETRY_MS = 1_000;
/** A due job is in the waiting list within this time. */
const DUE_MARGIN_MS = 30;

/**
 * Runs the handler for the jobs that a worker takes.
 *
 * Owns: which actors run in this process. Does not own: leases. BullMQ gives one job to two processes when a lock
 * expires; only the store prevents both from committing.
 *  B1  `#running` has the actors whose handler runs here or waits for its share (`fair-share.ts`). Another job of such an
 *      actor is held back briefly. So is a job beyond the concurrency, which occurs only while one worker replaces another.
 *  B2  A job is done when `serve` returns. It never fails: errors of the handler go to `onError`.
 *  B3  A job taken while closing is put back untouched.
 *  B4  Contents of jobs are not trusted: a job that is not a wake of this troupe is counted and dropped; the first is reported.
 */
export class WakeRunner {
  readonly #deps: WakeRunnerDeps;
  readonly #share: FairShare;
  readonly #running = new Set<string>();
  readonly #closing = new AbortController();
  readonly #handlersEnded = Promise.withResolvers<void>();
  /** Jobs taken by this process, and jobs that were not wakes of this troupe. */
  readonly counts = { taken: 0, ignored: 0 };
  #isDropping = false;

  constructor(deps: WakeRunnerDeps) {
    this.#deps = deps;
    this.#share = createFairShare(deps);
  }

  /** Returns when the job is done. Throws BullMQ's errors for jobs that were delayed or put back. */
  async serve(service: Service, taken: TakenJob): Promise<void> {
    const { queue, random } = this.#deps;
    const address = readAddress(taken.job);
    if (!address) return this.#ignore(`the job ${taken.job.id}`);
    if (this.#isClosing) return this.#putBack(taken);
    this.counts.taken += 1;
    if (taken.job.name === LATER) return this.#becomeDue(address, taken);
    const key = addressKey(address);
    queue.noteTaken(address, key);
    if (this.#running.has(key) || this.#running.size >= service.concurrency) {
      return this.#holdBack(taken, HOLD_BACK_MS + random() * HOLD_BACK_SPREAD_MS);
    }
    this.#running.add(key);
    const decision = await this.#share.enter(address.tenant);
    if (decision.kind !== 'begin') {
      this.#end(key);
      return decision.kind === 'closed' ? this.#putBack(taken) : this.#holdBack(taken, decision.inMs);
    }
    const outcome = await this.#handle(service, address, taken.job);
    if (outcome.kind !== 'busy') return;
    if (outcome.isBegun) void this.#moveToFrontWhenDue(taken.job, outcome.retryInMs);
    await this.#holdBack(taken, outcome.retryInMs);
  }

  /** A `later` that is due becomes a wake. */
  async #becomeDue(address: ActorAddress, taken: TakenJob): Promise<void> {
    try {
      await this.#deps.queue.wake(address, 0);
    } catch (error) {
      this.#deps.warn(error, 'queue');
      await this.#holdBack(taken, LATER_RETRY_MS);
    }
  }

  async #handle({ handler, onError }: Service, address: ActorAddress, job: Job<unknown>) {
    const { clock, observer, notify } = this.#deps;
    const takenAt = clock.now();
    const startedAt = clock.monotonic();
    let isTold = false;
    const waitEnded = (at = clock.now()) => {
      if (isTold) return;
      isTold = true;
      notify(() => observer.onTaken?.({ waitMs: Math.max(0, at - job.timestamp) }));
    };
    let outcome: WakeOutcome | { kind: 'failed' } = { kind: 'failed' };
    try {
      outcome = await handler(address, waitEnded);
    } catch (error) {
      notify(() => onError(error, address));
    } finally {
      this.#share.leave(address.tenant);
      this.#end(addressKey(address));
    }
    const { kind } = outcome;
    if (kind !== 'busy') waitEnded(takenAt);
    notify(() => observer.onDone?.({ runMs: clock.monotonic() - startedAt, outcome: kind }));
    return outcome;
  }

  #end(key: string): void {
    this.#running.delete(key);
    if (this.#isClosing && this.#running.size === 0) this.#handlersEnded.resolve();
  }

  async #holdBack({ job, token }: TakenJob, ms: number): Promise<never> {
    const due = Date.now() + Math.max(1, Math.round(ms));
    await job.moveToDelayed(due, token).catch((error: unknown) => this.#warnLostLock(error));
    throw new DelayedError();
  }

  /** A delayed job joins the end of the queue when it is due. */
  async #moveToFrontWhenDue(job: Job<unknown>, ms: number): Promise<void> {
    const { clock, queue, warn } = this.#deps;
    await clock.sleep(ms + DUE_MARGIN_MS, this.#closing.signal);
    if (this.#isClosing || job.id === undefined) return;
    await queue.moveToFront(job.id).catch((error: unknown) => warn(error, 'queue'));
  }

  async #putBack({ job, token }: TakenJob): Promise<never> {
    await job.moveToWait(token).catch((error: unknown) => this.#warnLostLock(error));
    throw new WaitingError();
  }

  /** Another worker has the job by now, or Redis lost it. */
  #warnLostLock(error: unknown): void {
    if (!this.#isClosing) this.#deps.warn(error, 'queue worker');
  }

  #ignore(what: string): void {
    const { observer, warn, notify } = this.#deps;
    if (this.counts.ignored === 0) {
      warn(`${what} in the queue is not a wake of this troupe; all such jobs are dropped`, 'queue');
    }
    this.counts.ignored += 1;
    notify(() => observer.onIgnored?.());
  }

  noteWorkerError(error: unknown): void {
    this.#deps.queue.noteWorkerError(error);
    if (isDecodeError(error)) void this.#dropUnreadable();
  }

  async #dropUnreadable(): Promise<void> {
    if (this.#isDropping) return;
    this.#isDropping = true;
    try {
      const dropped = await this.#deps.queue.dropUnreadable();
      for (let left = dropped; left > 0; left -= 1) this.#ignore('an unreadable job');
    } catch (error) {
      this.#deps.warn(error, 'queue');
    } finally {
      this.#isDropping = false;
    }
  }

  get running(): number {
    return this.#running.size;
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborts when the runner begins to close. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** Resolves at once if no handler runs, otherwise when the last one has ended in a closing runner. */
  handlersEnded(): Promise<void> {
    return this.#running.size === 0 ? Promise.resolve() : this.#handlersEnded.promise;
  }

  /** Resolves when the last handler has ended. */
  close(): Promise<void> {
    this.#closing.abort();
    this.#share.close();
    if (this.#running.size === 0) this.#handlersEnded.resolve();
    return this.#handlersEnded.promise;
  }
}
