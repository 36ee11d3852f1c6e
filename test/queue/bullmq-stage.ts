import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ActorAddress } from '../../src/events/index.ts';
import { createBullmqRouter } from '../../src/queue/bullmq/bullmq-router.ts';
import type { BullmqRouter, BullmqRouterOptions } from '../../src/queue/bullmq/bullmq-router.ts';
import {
  connectRedis,
  endConnection,
  openRedis,
  type RedisClient,
} from '../../src/queue/redis/connect-redis.ts';
import { removeKeys } from '../support/redis-keys.ts';
import { redisServerPath } from './own-redis.ts';

/** Routers of one troupe on the tests' Redis. Its keys are removed at the end. */
export interface BullmqStage extends AsyncDisposable {
  url: string;
  prefix: string;
  /** A client for the test itself. */
  redis: RedisClient;
  /** A key of the queue, by its last part. */
  key: (part: string) => string;
  warnings: string[];
  /** The shared connections of its routers, in the order in which they were opened. */
  producers: RedisClient[];
  /** Opens a router on the stage's Redis, or on that of `url`. */
  open(options?: Partial<BullmqRouterOptions> & { url?: string }): BullmqRouter;
}

export const REDIS_URL = process.env['REDIS_URL'];

/** A test that needs Redis; without one it is skipped, and its name says so. */
export function redisTest(name: string, run: (stage: BullmqStage) => Promise<void>): void {
  if (!REDIS_URL) return test.skip(`${name} (skipped: no Redis)`, () => {});
  test(name, async () => {
    await using stage = openStage(REDIS_URL);
    await run(stage);
  });
}

/** A test that starts and kills its own Redis. */
export function ownRedisTest(name: string, run: () => Promise<void>): void {
  if (redisServerPath() === null) test.skip(`${name} (skipped: no Redis server to start)`, () => {});
  else test(name, run);
}

export function openStage(url: string): BullmqStage {
  const prefix = `test-${randomBytes(6).toString('hex')}`;
  const redis = openRedis(url, { maxRetriesPerRequest: null });
  redis.on('error', () => {}); // Tests stop their Redis and wait until it is back.
  const routers: BullmqRouter[] = [];
  const warnings: string[] = [];
  const onWarning = (error: unknown, where: string) =>
    void warnings.push(`${where}: ${error instanceof Error ? error.message : error}`);
  const producers: RedisClient[] = [];
  const connect = (at: string) => {
    const producer = connectRedis(at, { profile: 'producer', onWarning });
    producers.push(producer);
    return { producer, connectBlocking: () => connectRedis(at, { profile: 'blocking', onWarning }) };
  };
  return {
    url,
    prefix,
    redis,
    key: (part) => `{${prefix}}:wake:${part}`,
    warnings,
    producers,
    open({ url: at = url, connections = connect(at), ...options } = {}) {
      const router = createBullmqRouter({ connections, prefix, clock: systemClock, onWarning, ...options });
      routers.push(router);
      return router;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(routers.map((router) => router.close()));
      producers.forEach(endConnection);
      if (redis.status === 'ready') {
        // A server that a test has killed may not be missed yet: then the commands would wait for ever.
        const gone = new Promise((resolve) => redis.once('close', resolve));
        const removed = removeKeys(redis, `{${prefix}}:*`).catch(() => undefined);
        await Promise.race([removed, gone]);
      }
      redis.disconnect();
    },
  };
}

export function address(agent: string, tenant = 'default'): ActorAddress {
  return ActorAddress.parse({ tenant, conversation: 'c1', agent });
}

/** Resolves when `holds` returns true; polls every few milliseconds. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  { what, ms = 30_000 }: { what: string; ms?: number },
): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms} ms`);
    await delay(5);
  }
}
