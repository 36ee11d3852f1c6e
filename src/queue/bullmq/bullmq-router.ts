import type { RedisClient } from '../redis/connect-redis.ts';
import type { Clock } from '../../base/clock.ts';
import type { StorePace } from '../fair-share.ts';
import { limitWarnings } from '../outage.ts';
import type { RouterObserver } from '../router-observer.ts';
import { assertStartable, MOST_WAITING, type Router, type Service } from '../router.ts';
import { QueueGuard } from './queue-guard.ts';
import { WakeQueue } from './wake-queue.ts';
import { WakeRunner } from './wake-runner.ts';
import { openWakeWorker, type WakeWorker, watchProgress } from './wake-worker.ts';

export interface BullmqRouterOptions {
  connections: RouterConnections;
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
 * The way of a wake: `WakeQueue` adds it as a job, in a lane of `fair-lanes.ts`; `openWakeWorker` takes it;
 * `WakeRunner` calls the handler as soon as `fair-share.ts` permits. `StrayWakes` and `QueueGuard` repair damage in
 * Redis, and `watchProgress` replaces a worker that takes nothing.
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
