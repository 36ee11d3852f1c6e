import { type RedisClient, afterMs, endConnection } from '../redis/connect-redis.ts';
import type { Clock } from '../../base/clock.ts';
import { type StorePace, createFairShare, type FairShare } from '../fair-share.ts';
import { limitWarnings } from '../outage.ts';
import type { RouterObserver } from '../queue-server.ts';
import { assertStartable, MOST_WAITING, type Router, type Service, type WakeOutcome } from '../router.ts';
import { QueueGuard } from './queue-guard.ts';
import { WakeQueue, isDecodeError, LATER, readAddress, bracedPrefix, QUEUE_NAME } from './wake-queue.ts';
import { DelayedError, type Job, WaitingError, Worker } from 'bullmq';
import { type ActorAddress, addressKey } from '../../events/index.ts';
import { Cluster } from 'ioredis';

export interface BullmqRouterOptions {
  connections: RouterConnections;
  /** Prefix of all keys of one troupe. */
  prefix?: string;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
  /** 0 <= n < 1. */
  random?: () => number;
  observer?: RouterObserver;
  /** Called if a replacement worker takes no jobs either: the process should be restarted. */
  onDeaf?: () => void;
  /** Time without renewal of its lock after which a job goes to another process, ms. */
  lockMs?: number;
  stalledCheckMs?: number;
  deafMs?: number;
  deafCheckMs?: number;
  /** Time for which wakes merge into a job before the job is inspected, ms. */
  strayAfterMs?: number;
  /** Interval between two inspections of the queue's keys. */
  guardMs?: number;
  /** Maximum number of waiting actors per tenant. */
  mostWaiting?: number | undefined;
  /** The concurrency that the store can serve. Default: unlimited. */
  pace?: StorePace | undefined;
}

interface RouterConnections {
  /** A connection of profile `producer`. It is shared: `close` leaves it open. */
  producer: RedisClient;
  /** A new connection of profile `blocking`, for a started router only; `close` ends it. */
  connectBlocking: () => RedisClient;
}

export interface BullmqRouter extends Router {
  /** Number of jobs that were not wakes of this troupe. */
  ignored(): number;
  /** Reports a failed Redis command. If a key's contents caused it, the keys are inspected. */
  suspect(error: unknown): void;
}

const UNPACED: StorePace = { took: () => undefined, limit: () => Number.MAX_SAFE_INTEGER };

/**
 * The router of many processes. Wakes are BullMQ jobs in one Redis: every process adds them, and those that `start`
 * serve them. Redis may lose them all: the store is the truth, and the sweeper finds actors that were not woken.
 *
 * The way of a wake: `WakeQueue` adds it as a job, in a lane of `wake-queue.ts`; `openWakeWorker` takes it;
 * `WakeRunner` calls the handler as soon as `fair-share.ts` permits. `StrayWakes` and `QueueGuard` repair damage in
 * Redis, and `watchProgress` replaces a worker that takes no jobs.
 */
export function createBullmqRouter(options: BullmqRouterOptions): BullmqRouter {
  const { prefix = 'troupe', clock, random = Math.random, observer = {}, onDeaf = () => {} } = options;
  const { lockMs = 30_000, stalledCheckMs = 15_000, deafMs = 60_000, deafCheckMs = 5_000 } = options;
  const { strayAfterMs = 30_000, guardMs = 5_000, mostWaiting = MOST_WAITING, pace = UNPACED } = options;
  const warn = limitWarnings(options.onWarning, clock);
  const notify = notifier(warn);
  const { producer: redis, connectBlocking } = options.connections;
  const onMended = (part: 'queue' | 'key') => notify(() => observer.onMended?.(part));
  const guard = new QueueGuard({ redis, prefix, clock, everyMs: guardMs, warn, onMended });
  const suspect = (error: unknown) => guard.suspect(error);
  const queue = new WakeQueue({ redis, prefix, clock, strayAfterMs, mostWaiting, warn, suspect });
  const runner = new WakeRunner({ queue, pace, clock, random, observer, warn, notify });
  const workers: WakeWorker[] = [];
  let service: Service | null = null;
  let closed: Promise<void> | null = null;
  let isClosed = false;

  const start: Router['start'] = (handler, { onLost = () => {}, ...rest }) => {
    assertStartable(service, rest.concurrency);
    service = { handler, ...rest };
    if (runner.signal.aborted) return;
    addWorker(service);
    guard.start(runner.signal, () => notify(onLost));
    void watchProgress({
      clock,
      signal: runner.signal,
      deafMs,
      everyMs: deafCheckMs,
      countOverdue: () => queue.countOverdue(deafMs),
      hasRoom: () => runner.running < rest.concurrency,
      countTaken: () => runner.counts.taken,
      replaceWorker,
      onDeaf: () => notify(onDeaf),
    });
  };

  function addWorker(current: Service): void {
    const worker = openWakeWorker({
      redis: connectBlocking(),
      prefix,
      concurrency: current.concurrency,
      lockMs,
      stalledCheckMs,
      serve: (job, token) => runner.serve(current, { job, token }),
      warn,
      onFailed: (error) => runner.noteWorkerError(error),
    });
    workers.push(worker);
  }

  /** The old worker keeps the locks of the jobs that it still runs. */
  function replaceWorker(): void {
    warn(`wakes are waiting, but none was taken for ${deafMs / 1_000} s: reconnecting to the queue`, 'queue');
    void workers.at(-1)?.close(runner.handlersEnded());
    if (service) addWorker(service);
  }

  async function shutDown(): Promise<void> {
    const handlersEnded = runner.close();
    await Promise.all(workers.map((worker) => worker.close(handlersEnded)));
    isClosed = true;
    await queue.close();
  }

  return {
    async wake(address, { delayMs = 0 } = {}) {
      // Handlers that end during `close` still wake actors, which other processes serve.
      if (!isClosed) await queue.wake(address, delayMs);
    },
    start,
    depth: () => queue.depth(),
    backlog: (tenant) => queue.backlog(tenant),
    waiting: (limit, tenant) => queue.waiting(limit, tenant),
    check: () => queue.reach(() => guard.check()),
    close: () => (closed ??= shutDown()),
    ignored: () => runner.counts.ignored,
    suspect,
  };
}

/** Calls callbacks of the application. One that throws must not stop the router. */
function notifier(warn: (error: unknown, where: string) => void) {
  return (call: () => void): void => {
    try {
      call();
    } catch (error) {
      warn(error, 'queue');
    }
  };
}

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
/** Time within which a due job is in the waiting list, ms. */
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
class WakeRunner {
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

  /** Turns a due `later` into a wake. */
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

  /** A delayed job joins the end of the queue when it is due, so this moves it to the front. */
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

/**
 * One BullMQ worker with its two connections.
 *  W1  After `close` it takes no more jobs, and renews the locks of its jobs until they are done.
 *  W2  While Redis is unavailable BullMQ's own close never ends. Therefore it gets `SETTLE_MS` after the end of the
 *      handlers to record the results; then the connections are cut, and other workers get its jobs when the locks expire.
 *  W3  A job whose lock was lost belongs to another worker. This is a warning; the work is not repeated here.
 */
interface WakeWorkerOptions {
  /** A connection of profile `blocking`; ends with the worker. */
  redis: RedisClient;
  prefix: string;
  concurrency: number;
  lockMs: number;
  stalledCheckMs: number;
  serve: (job: Job<unknown>, token: string) => Promise<void>;
  warn: (error: unknown, where: string) => void;
  /** Called with each error of BullMQ. */
  onFailed: (error: unknown) => void;
}

interface WakeWorker {
  close(handlersEnded: Promise<void>): Promise<void>;
}

const SETTLE_MS = 1_000;
const CUT_MS = 500;
/** How long an idle worker blocks on the queue, seconds. */
const IDLE_LOOK_S = 5;
const RETRY_FETCH_MS = 1_000;
/** A wake may stall any number of times: the store recognizes turns that kill their process. */
const STALLS_ALLOWED = 1_000_000;

function openWakeWorker(options: WakeWorkerOptions): WakeWorker {
  const { redis, concurrency, lockMs, stalledCheckMs, serve, warn, onFailed } = options;
  const connections = [redis];
  adoptCopies(redis, connections);
  let closing = false;

  const worker = new Worker<unknown, void>(QUEUE_NAME, (job, token) => serve(job, token ?? ''), {
    connection: redis,
    prefix: bracedPrefix(options.prefix),
    concurrency,
    lockDuration: lockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: STALLS_ALLOWED,
    drainDelay: IDLE_LOOK_S,
    runRetryDelay: RETRY_FETCH_MS,
    // Troupe sets no rate. A foreign one is soon removed (`queue-guard.ts`), and this worker must notice the removal.
    maximumRateLimitDelay: RETRY_FETCH_MS,
    // For foreign jobs without these options.
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  });
  worker.on('error', (error) => {
    onFailed(error);
    if (!isDecodeError(error) && !closing && redis.status === 'ready') warn(error, 'queue worker');
  });
  worker.on('stalled', (jobId) =>
    warn(`the wake ${jobId} had stopped with its process and is served again`, 'queue worker'),
  );

  async function close(handlersEnded: Promise<void>): Promise<void> {
    closing = true;
    const closed = worker.close().catch((error: unknown) => warn(error, 'queue worker'));
    const settled = async () => (redis.status === 'ready' ? afterMs(SETTLE_MS) : undefined);
    await Promise.race([closed, handlersEnded.then(settled)]);
    connections.forEach(endConnection);
    await Promise.race([closed, afterMs(CUT_MS)]);
  }

  return { close };
}

/** BullMQ duplicates the connection for blocking reads. The copy must end with the worker and needs an error listener. */
function adoptCopies(redis: RedisClient, connections: RedisClient[]): void {
  const adopt = <T extends RedisClient>(copy: T): T => {
    copy.on('error', () => {});
    connections.push(copy);
    return copy;
  };
  if (redis instanceof Cluster) {
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (nodes, override) => adopt(duplicate(nodes, override));
  } else {
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => adopt(duplicate(override));
  }
}

/**
 * Detects a deaf worker: connected, but it takes no wakes, for example after a failover. Its status does not show this;
 * overdue work while this process has room does.
 *  D1  A worker is deaf if every check within `deafMs` found overdue work and room, and no wake was taken.
 *  D2  A deaf worker is replaced. If its replacement is deaf too, `onDeaf` is called, and the process should end.
 *  D3  If Redis does not answer, the time starts again.
 */
interface ProgressWatchDeps {
  clock: Clock;
  signal: AbortSignal;
  deafMs: number;
  everyMs: number;
  /** Overdue work of the whole queue. */
  countOverdue: () => Promise<number>;
  hasRoom: () => boolean;
  /** Wakes this process has taken so far. */
  countTaken: () => number;
  replaceWorker: () => void;
  onDeaf: () => void;
}

export async function watchProgress(deps: ProgressWatchDeps): Promise<void> {
  const { clock, signal } = deps;
  let takenBefore = deps.countTaken();
  let idleSince = clock.monotonic();
  let replaced = false;

  for (;;) {
    await clock.sleep(deps.everyMs, signal);
    if (signal.aborted) return;
    const taken = deps.countTaken();
    if (taken !== takenBefore) replaced = false;
    const stuck = taken === takenBefore && deps.hasRoom() && (await waits(deps.countOverdue));
    takenBefore = taken;
    if (!stuck) {
      idleSince = clock.monotonic();
    } else if (clock.monotonic() - idleSince >= deps.deafMs) {
      idleSince = clock.monotonic();
      if (replaced) deps.onDeaf();
      else deps.replaceWorker();
      replaced = true;
    }
  }
}

async function waits(countOverdue: () => Promise<number>): Promise<boolean> {
  try {
    return (await countOverdue()) > 0;
  } catch {
    // D3; the connection warns that Redis is unavailable.
    return false;
  }
}
