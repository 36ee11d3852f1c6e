import { type Job, Worker } from 'bullmq';
import { Cluster } from 'ioredis';
import { afterMs, endConnection, type RedisClient } from '../redis/connect-redis.ts';
import { bracedPrefix, isDecodeError, QUEUE_NAME } from './wake-queue.ts';
import type { Clock } from '../../base/clock.ts';

/**
 * One BullMQ worker with its two connections.
 *  W1  After `close` it takes no more jobs, and renews the locks of its jobs until they are done.
 *  W2  While Redis is unavailable BullMQ's own close never ends. Therefore it gets `SETTLE_MS` after the end of the
 *      handlers to record the results; then the connections are cut, and other workers get its jobs when the locks expire.
 *  W3  A job whose lock was lost belongs to another worker. This is a warning; the work is not repeated here.
 */
export interface WakeWorkerOptions {
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

export interface WakeWorker {
  close(handlersEnded: Promise<void>): Promise<void>;
}

const SETTLE_MS = 1_000;
const CUT_MS = 500;
/** How long an idle worker blocks on the queue, seconds. */
const IDLE_LOOK_S = 5;
const RETRY_FETCH_MS = 1_000;
/** A wake may stall any number of times: the store recognizes turns that kill their process. */
const STALLS_ALLOWED = 1_000_000;

export function openWakeWorker(options: WakeWorkerOptions): WakeWorker {
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
    // Troupe sets no rate. A foreign one is soon removed (`queue-guard.ts`), and this worker should notice that.
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
