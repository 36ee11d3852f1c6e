import { Redis } from 'ioredis';
import { REDIS_URL } from './stage.ts';

/** CPU seconds that this process and the Redis server have used so far, which other load does not distort. */
export async function cpuSeconds(): Promise<{ node: number; redis: number }> {
  const { user, system } = process.cpuUsage();
  const redis = new Redis(REDIS_URL);
  const info = await redis.info('cpu');
  redis.disconnect();
  const used = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return { node: (user + system) / 1e6, redis: used('used_cpu_user') + used('used_cpu_sys') };
}
