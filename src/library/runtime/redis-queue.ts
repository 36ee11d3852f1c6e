import { randomUUID } from 'node:crypto';
import { createBullmqRouter } from '../../queue/bullmq/bullmq-router.ts';
import {
  checkRedis,
  connectRedis,
  endConnection,
  readyWithin,
  type RedisProfile,
} from '../../queue/redis/connect-redis.ts';
import { createRedisAdmission } from '../../queue/redis/redis-admission.ts';
import { createRedisBroadcast } from '../../queue/redis/redis-broadcast.ts';
import { type Queue, queueObserver, type QueueOptions, type QueueServer } from '../../queue/queue-server.ts';

/** Time limit for the check of a server, ms. */
const CHECK_MS = 3_000;

/** The queue in Redis. Its errors are `config_invalid`, `queue_unavailable`, `server_unsuitable`. */
export function redisQueue(redis: string, prefix: string): QueueServer {
  return {
    check: ({ onWarning }) => checkRedis(redis, { onWarning, timeoutMs: CHECK_MS }),
    open: (options) => openRedisQueue(redis, prefix, options),
  };
}

async function openRedisQueue(redis: string, prefix: string, options: QueueOptions): Promise<Queue> {
  const { clock, caps, leaseMs, mostWaiting, metrics, onWarning, onDeaf, pace } = options;
  const connect = (profile: RedisProfile) => connectRedis(redis, { profile, onWarning });
  const producer = connect('producer');
  // Redis has just answered the check. Without this wait, the first event might meet a connection that is not ready.
  await readyWithin(producer, CHECK_MS);
  // Its subscription is not awaited: events appended before it are found by reading the log.
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
    // BullMQ detects a dead holder within one lock and two checks, which is no later than the end of its lease.
    mostWaiting,
    pace,
    lockMs: leaseMs / 2,
    stalledCheckMs: leaseMs / 4,
    observer: queueObserver(metrics),
  });
  const admission = createRedisAdmission({
    redis: producer,
    prefix,
    caps,
    onWarning,
    onFailed: (error) => router.suspect(error),
  });
  return {
    router,
    broadcast,
    admission,
    async close() {
      await Promise.all([broadcast.close(), admission.close()]);
      endConnection(producer);
    },
  };
}
