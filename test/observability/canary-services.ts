import { MongoClient } from 'mongodb';
import { openRedis, primariesOf } from '../../src/queue/redis/connect-redis.ts';
import type { TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { dropDatabases, mongoUrl, redisUrl } from '../support/mode.ts';

export interface WatchedServices extends AsyncDisposable {
  options: Pick<TroupeOptions, 'mongodb' | 'redis' | 'prefix'>;
  /** Everything sent to Redis so far: jobs, scripts with their arguments, published messages. */
  commands(): string[][];
  /** Everything that MongoDB stores. */
  documents(): Promise<unknown>;
}

/** MongoDB and Redis with a monitor. */
export async function watchCommands(): Promise<WatchedServices> {
  const name = `canaries_${process.pid}_${Date.now().toString(36)}`;
  const seen: string[][] = [];
  const redis = openRedis(redisUrl(), { lazyConnect: true });
  await redis.connect();
  const monitors = await Promise.all(primariesOf(redis).map((each) => each.monitor()));
  for (const each of monitors) each.on('monitor', (_time: string, args: string[]) => void seen.push(args));
  const client = new MongoClient(mongoUrl(name));
  return {
    options: { mongodb: mongoUrl(name), redis: redisUrl(), prefix: name },
    // Other tests use the same server.
    commands: () => seen.filter((args) => args.some((arg) => arg.includes(name))),
    async documents() {
      const collections = await client.db().collections();
      return Promise.all(collections.map((each) => each.find().toArray()));
    },
    async [Symbol.asyncDispose]() {
      for (const each of monitors) each.disconnect();
      redis.disconnect();
      await client.close();
      await dropDatabases(new Set([name]));
    },
  };
}
