import { DelayedError, WaitingError } from 'bullmq';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { ActorAddress, addressKey } from '../../events/index.ts';
import { connectRedis, endConnection } from '../redis/connect-redis.ts';
import { MOST_WAITING, type QueueDepth, type Router, type WakeHandler, type WakeOutcome } from '../router.ts';
import { createFairShare, type StorePace } from '../fair-share.ts';
import { limitWarnings } from '../redis/outage.ts';
import { openWakeWorker, type WakeWorker, watchProgress } from './wake-worker.ts';
import { createQueueGuard } from './queue-guard.ts';
import { bracedPrefix, LATER, QUEUE_NAME, WAKE, openWakeQueue } from './wake-queue.ts';

/**
 * The router of many processes: wakes are BullMQ jobs in one Redis, added by all and served by those that `start`.
 * Redis may lose them all: the store is the truth, and the sweeper finds what is not woken.
 *
 * Owns: the connections it makes, the queue and the worker on them, and which actors run in this process.
 * Does not own: leases. BullMQ gives one job to two processes when a lock runs out; only the store forbids two to commit.
 *  B1  `running` has the actors whose handler runs here, or waits for its share (`fair-share.ts`). An actor that is handed
 *      to us meanwhile is held back shortly, and so is any that would exceed the concurrency, which happens only while
 *      one worker replaces another.
 *  B2  A job is done when `serve` returns, and is never failed: what goes wrong in a handler goes to `onError`.
 *  B3  What is taken while closing is given back untouched.
 *  B4  Nothing in a job is believed: what is no wake of ours is counted, told once, and dropped.
 */
export interface BullmqRouterOptions {
  connections: RouterConnections | { url: string };
  /** Prefix of all keys of one troupe. */
  prefix?: string;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
  /** 0 <= n < 1. */
  random?: () => number;
  observer?: RouterObserver;
  /** Called when a replacement worker takes nothing either: the process should be restarted. */
  onDeaf?: () => void;
  /** A job goes to another process when its lock was not renewed for this long. */
  lockMs?: number;
  stalledCheckMs?: number;
  deafMs?: number;
  deafCheckMs?: number;
  /** A job that wakes have merged into for this long is inspected. */
  strayAfterMs?: number;
  /** Interval between two inspections of the queue's keys. */
  guardMs?: number;
  /** Maximum number of waiting actors per tenant. */
  mostWaiting?: number | undefined;
  /** Concurrency that the store keeps pace with. Default: unlimited. */
  pace?: StorePace | undefined;
}

export interface RouterConnections {
  /** A connection of profile `producer`. It is shared: `close` leaves it open. */
  producer: Redis;
  /** A new connection of the profile `blocking`, only for a router that is started; ended by `close`. */
  connectBlocking: () => Redis;
}

/** For histograms. */
export interface RouterObserver {
  /** A wake is served for the first time; `waitMs` since it was added. */
  onTaken?(facts: { waitMs: number }): void;
  onDone?(facts: { runMs: number; outcome: WakeOutcome['kind'] | 'failed' }): void;
  /** A job was not a wake of this troupe. */
  onIgnored?(): void;
  /** A damaged key was repaired, or the queue was emptied. */
  onMended?(part: 'queue' | 'key'): void;
}

export interface BullmqRouter extends Router {
  /** Number of jobs that were not wakes of this troupe. */
  ignored(): number;
  /** Reports a failed Redis command. If a key's contents caused it, the keys are inspected. */
  suspect(error: unknown): void;
}

interface Service {
  handler: WakeHandler;
  concurrency: number;
  onError: (error: unknown, address: ActorAddress) => void;
}

const UNPACED: StorePace = { took: () => undefined, limit: () => Number.MAX_SAFE_INTEGER };
const HOLD_BACK_MS = 100;
const HOLD_BACK_SPREAD_MS = 150;
const LATER_RETRY_MS = 1_000;
/** After this margin a due job is in the waiting list. */
const DUE_MARGIN_MS = 30;

export function createBullmqRouter(options: BullmqRouterOptions): BullmqRouter {
  const { prefix = 'troupe', clock, random = Math.random, observer = {}, onDeaf = () => {} } = options;
  const { lockMs = 30_000, stalledCheckMs = 15_000, strayAfterMs = 30_000 } = options;
  const { deafMs = 60_000, deafCheckMs = 5_000, guardMs = 5_000, mostWaiting = MOST_WAITING } = options;
  const warn = limitWarnings(options.onWarning, clock);
  const { producer, connectBlocking, release } = openConnections(options.connections, options.onWarning);
  const own = `${bracedPrefix(prefix)}:`;
  const guard = createQueueGuard({
    redis: producer,
    own,
    base: `${own}${QUEUE_NAME}:`,
    clock,
    everyMs: guardMs,
    warn,
    onMended: (part) => notify(() => observer.onMended?.(part)),
  });
  const suspect = (error: unknown) => guard.suspect(error);
  const queue = openWakeQueue({ redis: producer, prefix, clock, strayAfterMs, mostWaiting, warn, suspect });
  const running = new Set<string>();
  const share = createFairShare({ pace: options.pace ?? UNPACED, clock });
  const closing = new AbortController();
  const handlersEnded = Promise.withResolvers<void>();
  const workers: WakeWorker[] = [];
  let service: Service | null = null;
  let taken = 0;
  let ignored = 0;
  let dropping = false;
  let closed: Promise<void> | null = null;
  let isClosed = false;

  async function wake(address: ActorAddress, { delayMs = 0 }: { delayMs?: number } = {}): Promise<void> {
    // Handlers that end during `close` still wake actors, which other processes serve.
    if (!isClosed) await queue.wake(address, delayMs);
  }

  async function serve({ handler, concurrency, onError }: Service, job: Job<unknown>, token: string) {
    const address = readAddress(job);
    if (!address) return ignore(job);
    if (closing.signal.aborted) return giveBack(job, token);
    taken += 1;
    if (job.name === LATER) return becomeDue(address, job, token);
    const key = addressKey(address);
    queue.taken(address, key);
    if (running.has(key) || running.size >= concurrency) {
      return holdBack(job, token, HOLD_BACK_MS + random() * HOLD_BACK_SPREAD_MS);
    }
    running.add(key);
    const admission = await share.enter(address.tenant);
    if (admission.kind !== 'begin') {
      end(key);
      if (admission.kind === 'closed') return giveBack(job, token);
      return holdBack(job, token, admission.inMs);
    }
    if (job.attemptsStarted <= 1)
      notify(() => observer.onTaken?.({ waitMs: Math.max(0, clock.now() - job.timestamp) }));
    const startedAt = clock.monotonic();
    let outcome: WakeOutcome | { kind: 'failed' } = { kind: 'failed' };
    try {
      outcome = await handler(address);
    } catch (error) {
      notify(() => onError(error, address));
    } finally {
      share.leave(address.tenant);
      end(key);
    }
    const { kind } = outcome;
    notify(() => observer.onDone?.({ runMs: clock.monotonic() - startedAt, outcome: kind }));
    if (outcome.kind !== 'busy') return;
    if (outcome.isBegun) void hasten(job, outcome.retryInMs);
    await holdBack(job, token, outcome.retryInMs);
  }

  function end(key: string): void {
    running.delete(key);
    if (closing.signal.aborted && running.size === 0) handlersEnded.resolve();
  }

  async function becomeDue(address: ActorAddress, job: Job<unknown>, token: string): Promise<void> {
    try {
      await queue.wake(address, 0);
    } catch (error) {
      warn(error, 'queue');
      await holdBack(job, token, LATER_RETRY_MS);
    }
  }

  async function holdBack(job: Job<unknown>, token: string, ms: number): Promise<never> {
    await job.moveToDelayed(Date.now() + Math.max(1, Math.round(ms)), token).catch(lostLock);
    throw new DelayedError();
  }

  /** A delayed job joins the end of the queue when it is due; this moves it to the front. */
  async function hasten(job: Job<unknown>, ms: number): Promise<void> {
    await clock.sleep(ms + DUE_MARGIN_MS, closing.signal);
    if (closing.signal.aborted || job.id === undefined) return;
    await queue.toFront(job.id).catch((error: unknown) => warn(error, 'queue'));
  }

  async function giveBack(job: Job<unknown>, token: string): Promise<never> {
    await job.moveToWait(token).catch(lostLock);
    throw new WaitingError();
  }

  /** Another worker has the job by now, or Redis lost it. */
  function lostLock(error: unknown): void {
    if (!closing.signal.aborted) warn(error, 'queue worker');
  }

  function ignore(job: Job<unknown> | null): void {
    if (ignored === 0) {
      const which = job ? `the job ${job.id}` : 'a job that cannot be read';
      warn(`${which} in the queue is no wake of this troupe; it is dropped, as is all such`, 'queue');
    }
    ignored += 1;
    notify(() => observer.onIgnored?.());
  }

  async function dropUnreadable(): Promise<void> {
    if (dropping) return;
    dropping = true;
    try {
      for (let left = await queue.dropUnreadable(); left > 0; left -= 1) ignore(null);
    } catch (error) {
      warn(error, 'queue');
    } finally {
      dropping = false;
    }
  }

  /** A callback that throws must not break serving. */
  function notify(call: () => void): void {
    try {
      call();
    } catch (error) {
      warn(error, 'queue');
    }
  }

  function start(
    handler: WakeHandler,
    { concurrency, onError, onLost = () => {} }: Parameters<Router['start']>[1],
  ): void {
    if (service)
      throw new TroupeError('internal', 'this router was started already; a router serves one handler');
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new TroupeError(
        'config_invalid',
        `concurrency must be a whole number from 1, not ${concurrency}`,
      );
    }
    service = { handler, concurrency, onError };
    if (closing.signal.aborted) return;
    addWorker(service);
    guard.start(closing.signal, () => notify(onLost));
    void watchProgress({
      clock,
      signal: closing.signal,
      deafMs,
      everyMs: deafCheckMs,
      countOverdue: () => queue.overdue(deafMs),
      hasRoom: () => running.size < concurrency,
      countTaken: () => taken,
      replaceWorker: () => replaceWorker(),
      onDeaf: () => notify(onDeaf),
    });
  }

  function addWorker(current: Service): void {
    workers.push(
      openWakeWorker({
        redis: connectBlocking(),
        prefix,
        concurrency: current.concurrency,
        lockMs,
        stalledCheckMs,
        serve: (job, token) => serve(current, job, token),
        warn,
        onUnreadable: () => void dropUnreadable(),
        onFailed: (error) => {
          suspect(error);
          queue.suspectLost(error);
        },
      }),
    );
  }

  /** The old worker keeps the locks of what it still runs. */
  function replaceWorker(): void {
    warn(`wakes wait and none was taken for ${deafMs / 1_000} s: connecting to the queue anew`, 'queue');
    void workers.at(-1)?.close(running.size === 0 ? Promise.resolve() : handlersEnded.promise);
    if (service) addWorker(service);
  }

  function close(): Promise<void> {
    closed ??= shutDown();
    return closed;
  }

  async function shutDown(): Promise<void> {
    closing.abort();
    share.close();
    if (running.size === 0) handlersEnded.resolve();
    await Promise.all(workers.map((worker) => worker.close(handlersEnded.promise)));
    isClosed = true;
    await queue.close();
    release();
  }

  return {
    wake,
    start,
    depth: (): Promise<QueueDepth> => queue.depth(),
    backlog: (tenant) => queue.backlog(tenant),
    check: () => queue.reached(() => guard.check()),
    close,
    ignored: () => ignored,
    suspect,
  };
}

function readAddress(job: Job<unknown>): ActorAddress | null {
  if (job.name !== WAKE && job.name !== LATER) return null;
  const parsed = ActorAddress.safeParse(job.data);
  return parsed.success ? parsed.data : null;
}

function openConnections(
  given: BullmqRouterOptions['connections'],
  onWarning: BullmqRouterOptions['onWarning'],
): RouterConnections & { release: () => void } {
  if ('producer' in given) return { ...given, release: () => {} };
  const producer = connectRedis(given.url, { profile: 'producer', onWarning });
  return {
    producer,
    connectBlocking: () => connectRedis(given.url, { profile: 'blocking', onWarning }),
    release: () => endConnection(producer),
  };
}
