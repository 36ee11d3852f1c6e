import { toTroupeError } from '../errors.ts';
import type { Check } from './check.ts';

type Env = Record<string, string | undefined>;

/** The servers of the distributed mode, as far as they are named: one machine needs none. */
export async function checkServices(env: Env): Promise<Check[]> {
  const mongodb = env['MONGODB_URL']?.trim();
  const redis = env['REDIS_URL']?.trim();
  const checks = await Promise.all([
    mongodb ? checkMongodb(mongodb) : null,
    redis ? checkRedisServer(redis) : null,
  ]);
  const found = checks.filter((check) => check !== null);
  if (found.length !== 1) return found;
  const [named, other] = mongodb ? ['MONGODB_URL', 'REDIS_URL'] : ['REDIS_URL', 'MONGODB_URL'];
  const detail = `${named} is set and ${other} is not: troupe serve and troupe worker need both`;
  return [...found, { name: 'services', status: 'warning', detail }];
}

async function checkMongodb(url: string): Promise<Check> {
  const name = 'mongodb';
  try {
    const { checkMongo } = await import('../store/mongo/check-mongo.ts');
    const { at, version, replicaSet } = await checkMongo(url);
    if (replicaSet !== null)
      return { name, status: 'ok', detail: `${at}: ${version}, replica set ${replicaSet}` };
    const detail = `${at}: ${version}, no replica set: what it holds is lost with its disk`;
    return { name, status: 'warning', detail };
  } catch (error) {
    return { name, status: 'failed', detail: toTroupeError(error).message };
  }
}

async function checkRedisServer(url: string): Promise<Check> {
  const name = 'redis';
  const warnings: string[] = [];
  try {
    const [{ checkRedis }, { redisAddress }] = await Promise.all([
      import('../queue/redis/check-redis.ts'),
      import('../queue/redis/connect-redis.ts'),
    ]);
    const onWarning = (warning: unknown) => warnings.push(String(warning));
    const { version, policy } = await checkRedis(url, { onWarning });
    if (warnings.length > 0) return { name, status: 'warning', detail: warnings.join('; ') };
    return { name, status: 'ok', detail: `${redisAddress(url)}: ${version}, ${policy}` };
  } catch (error) {
    return { name, status: 'failed', detail: toTroupeError(error).message };
  }
}
