import { type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { endConnection } from '../redis/connect-redis.ts';
import { bracedPrefix, isDecodeError, QUEUE_NAME } from './wake-queue.ts';
import type { Clock } from '../../clock.ts';

/**
 * One BullMQ worker with its two connections, and an end that comes in any weather.
 *  W1  It is asked to stop once. It then takes nothing more, and what it has is renewed until it is done.
 *  W2  While Redis is away BullMQ's own close never ends. After the handlers have ended it is given `SETTLE_MS` to
 *      write that down; then the connections are cut, and other workers find its jobs when their locks run out.
 *  W3  A lost lock is another worker's job by now. It is told, and the work is never done again for it.
 */
export interface WakeWorkerOptions {
  /** Of the profile `blocking`; ended with the worker. */
  redis: Redis;
  prefix: string;
  concurrency: number;
  lockMs: number;
  stalledCheckMs: number;
  serve: (job: Job<unknown>, token: string) => Promise<void>;
  warn: (error: unknown, where: string) => void;
  /** Called when a job cannot be decoded. */
  onUnreadable: () => void;
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
/** A stalled job is a wake like any other, however often it stalls: the store counts what is poison. */
const STALLS_ALLOWED = 1_000_000;

export function openWakeWorker(options: WakeWorkerOptions): WakeWorker {
  const { redis, concurrency, lockMs, stalledCheckMs, serve, warn, onUnreadable, onFailed } = options;
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
    // Nothing of ours sets a rate: one that is set is gone soon, and this worker should find that out.
    maximumRateLimitDelay: RETRY_FETCH_MS,
    // For jobs that were not added by us and say nothing about it.
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  });
  worker.on('error', (error) => {
    onFailed(error);
    if (isDecodeError(error)) onUnreadable();
    else if (!closing && redis.status === 'ready') warn(error, 'queue worker');
  });
  worker.on('stalled', (jobId) =>
    warn(
      `the wake ${jobId} had stopped: its process died or did not answer; it is served anew`,
      'queue worker',
    ),
  );

  async function close(handlersEnded: Promise<void>): Promise<void> {
    closing = true;
    const closed = worker.close().catch((error: unknown) => warn(error, 'queue worker'));
    const settled = async () => (redis.status === 'ready' ? pause(SETTLE_MS) : undefined);
    await Promise.race([closed, handlersEnded.then(settled)]);
    connections.forEach(endConnection);
    await Promise.race([closed, pause(CUT_MS)]);
  }

  return { close };
}

/** BullMQ makes itself a copy of the connection to block on; it must end with this one, and its errors be heard. */
function adoptCopies(redis: Redis, connections: Redis[]): void {
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => {
    const copy = duplicate(override);
    copy.on('error', () => {});
    connections.push(copy);
    return copy;
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/**
 * Watches that wakes are really taken. A worker may be alive, connected and deaf, after a failover for example, and no
 * status of it tells; what tells is work that waits while this process has room and takes none.
 *  D1  Deaf is: at every look in `deafMs` there was overdue work and room, and nothing was taken.
 *  D2  The first time the worker is replaced; if the next one takes nothing either, `onDeaf`, and the process should end.
 *  D3  A Redis that does not answer is no deafness: the count starts anew.
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
    // D3; the connection tells that Redis is away.
    return false;
  }
}
