import { randomUUID } from 'node:crypto';
import { connectRedis, endConnection, type RedisProfile } from '../../src/queue/redis/connect-redis.ts';

export const REDIS_URL = process.env['REDIS_URL'] ?? '';

/** Name of a group of tests that needs Redis. */
export function needsRedis(name: string, there = REDIS_URL !== ''): string {
  return there ? name : `${name} (skipped: no Redis)`;
}

export function uniquePrefix(): string {
  return `test-${randomUUID().slice(0, 8)}`;
}

/** Connections of one test, ended together. */
export function createConnections(url = REDIS_URL) {
  const opened = new Set<ReturnType<typeof connectRedis>>();
  function connect(profile: RedisProfile) {
    const redis = connectRedis(url, { profile, onWarning: () => {} });
    opened.add(redis);
    return redis;
  }
  return {
    connect,
    async ready(profile: RedisProfile) {
      const redis = connect(profile);
      if (redis.status !== 'ready')
        await new Promise<void>((resolve) => redis.once('ready', () => resolve()));
      return redis;
    },
    end() {
      for (const redis of opened) endConnection(redis);
      opened.clear();
    },
  };
}

/** Resolves when `isSo` returns true; polls every few ms. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}
