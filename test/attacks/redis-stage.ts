import { randomBytes } from 'node:crypto';
import { Queue } from 'bullmq';
import { onTestFinished } from 'vitest';
import { openRedis } from '../../src/queue/redis/connect-redis.ts';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import { dropDatabases, mongoUrl, redisUrl } from '../support/mode.ts';
import { openStage, type StageOptions } from './stage.ts';

/** A troupe on MongoDB and Redis, whose prefix an attacker knows. */
export async function openShared(options: StageOptions) {
  const prefix = `attack_${randomBytes(6).toString('hex')}`;
  onTestFinished(() => dropDatabases(new Set([prefix])));
  const stage = await openStage({
    ...options,
    open: options.open ?? openTroupe,
    troupe: { ...options.troupe, mongodb: mongoUrl(prefix), redis: redisUrl(), prefix },
  });
  const redis = openRedis(redisUrl(), { maxRetriesPerRequest: null });
  const queue = new Queue<unknown>('wake', {
    connection: redis,
    prefix: `{${prefix}}`,
    skipVersionCheck: true,
  });
  onTestFinished(async () => {
    await queue.close();
    redis.disconnect();
  });
  return { stage, redis, queue, prefix };
}
