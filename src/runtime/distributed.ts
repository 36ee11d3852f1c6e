import { randomUUID } from 'node:crypto';
import { toTroupeError, TroupeError } from '../errors.ts';
import { createBullmqRouter } from '../queue/bullmq/bullmq-router.ts';
import { checkRedis } from '../queue/redis/check-redis.ts';
import { connectRedis, endConnection, readyWithin, type RedisProfile } from '../queue/redis/connect-redis.ts';
import { createRedisAdmission } from '../queue/redis/redis-admission.ts';
import { createRedisBroadcast } from '../queue/redis/redis-broadcast.ts';
import { createStorePace } from '../queue/fair-share.ts';
import { createStore } from '../store/create-store.ts';
import type { StoreDriver } from '../store/driver.ts';
import { slicesOf } from '../slices.ts';
import type { DatabaseOptions } from './open-database.ts';
import { chargeReads, countStoreErrors, reportDamage, timeStore } from './observed-store.ts';
import type { ServiceOptions, Services } from './services.ts';

export interface DistributedServers {
  openDriver: (options: DatabaseOptions) => Promise<StoreDriver>;
  redis: string;
  prefix: string;
}

/** Time limit for the check of a server, ms. */
const CHECK_MS = 3_000;
/** More turns than a process runs at once, so that the store's pace starts unlimited. */
const MOST_AT_ONCE = 1_024;
/** How far sweeps look back, ms: the log may be very large. See P2 of the sweeper. */
const SWEEP_WINDOW_MS = 600_000;

/**
 * Opens one process of many. The database holds the data; Redis holds only what speeds it up. Both are checked before anything
 * else is opened. Throws `config_invalid`, `store_unavailable`, `queue_unavailable`, `server_unsuitable`, `store_newer`.
 */
export async function openDistributed(
  { openDriver, redis, prefix }: DistributedServers,
  options: ServiceOptions,
): Promise<Services> {
  const { clock, caps, leaseMs, mostWaiting, metrics, onWarning, onDeaf } = options;
  const [opened, checked] = await Promise.allSettled([
    openDriver({ clock, onWarning }),
    checkRedis(redis, { onWarning, timeoutMs: CHECK_MS }),
  ]);
  if (opened.status === 'rejected' || checked.status === 'rejected') {
    if (opened.status === 'fulfilled') await opened.value.close();
    throw both(opened, checked);
  }
  const pace = createStorePace(MOST_AT_ONCE, clock);
  const driver = timeStore(countStoreErrors(opened.value, metrics), clock, (ms) => pace.took(ms));
  const connect = (profile: RedisProfile) => connectRedis(redis, { profile, onWarning });
  const producer = connect('producer');
  // Redis has just answered the check. This wait keeps the first event from meeting a connection that is not ready.
  await readyWithin(producer, CHECK_MS);
  const broadcast = createRedisBroadcast({
    publisher: producer,
    connectSubscriber: () => connect('blocking'),
    prefix,
    process: randomUUID(),
    onWarning,
  });
  const router = createBullmqRouter({
    connections: { producer, connectBlocking: () => connect('blocking') },
    prefix,
    clock,
    onWarning,
    onDeaf,
    // BullMQ notices a dead holder within one lock and two checks, no later than the end of its lease.
    mostWaiting,
    pace,
    lockMs: leaseMs / 2,
    stalledCheckMs: leaseMs / 4,
    observer: {
      onTaken: ({ waitMs }) => metrics.time('wake_wait', {}, waitMs),
      onDone: ({ runMs, outcome }) => metrics.time('activation', { outcome }, runMs),
      onIgnored: () => metrics.count('wakes_ignored', {}),
      onMended: (part) => metrics.count('queue_mended', { part }),
    },
  });
  const admission = createRedisAdmission({
    redis: producer,
    prefix,
    caps,
    onWarning,
    onFailed: (error) => router.suspect(error),
  });
  // Not awaited: events appended before the subscription are found by reading the log.
  return {
    store: createStore(chargeReads(driver), slicesOf(clock), reportDamage(metrics, onWarning)),
    router,
    broadcast,
    admission,
    limits: { soleOwner: false, sweepWindowMs: SWEEP_WINDOW_MS },
    async close() {
      await Promise.all([broadcast.close(), admission.close()]);
      await driver.close();
      endConnection(producer);
    },
  };
}

/** Reports both failures at once, so that the operator can fix both. */
function both(...results: readonly PromiseSettledResult<unknown>[]): unknown {
  const errors = results.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  const [first, second] = errors.map(toTroupeError);
  if (!first || !second) return errors[0];
  return new TroupeError(first.code, `${first.message}; and ${second.message}`, first.data, { cause: first });
}
