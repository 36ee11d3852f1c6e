import { openRedis, primariesOf, type RedisClient } from '../../src/queue/redis/connect-redis.ts';

/** Removes the keys that match, wherever they are. Those of one troupe are in one slot of a Cluster. */
export async function removeKeys(redis: RedisClient, pattern: string): Promise<void> {
  for (const server of primariesOf(redis)) {
    const found = server.scanStream({ match: pattern, count: 1_000 }) as AsyncIterable<string[]>;
    for await (const keys of found) if (keys.length > 0) await redis.unlink(...keys);
  }
}

export async function keysOf(redis: RedisClient, pattern: string): Promise<string[]> {
  return (await Promise.all(primariesOf(redis).map((each) => each.keys(pattern)))).flat();
}

/** The same over a connection of its own. */
export async function removeKeysAt(url: string, pattern: string): Promise<void> {
  const redis = openRedis(url, { lazyConnect: true });
  await redis.connect();
  await removeKeys(redis, pattern);
  redis.disconnect();
}
