import { Redis } from 'ioredis';

const ANSWER_MS = 2_000;

/** Asks one server of this machine over a connection of its own. Rejects if it does not answer. */
export async function askRedis<T>(port: number, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: ANSWER_MS,
    commandTimeout: ANSWER_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  redis.on('error', () => {}); // The request that fails reports it.
  try {
    await redis.connect();
    return await question(redis);
  } finally {
    redis.disconnect();
  }
}
