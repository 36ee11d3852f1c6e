import { createCompose } from './compose.ts';
import type { Compose, ComposeService } from './compose.ts';
import { firstWay } from './first-way.ts';
import type { Service, Way } from './first-way.ts';
import { anyMongod, mongodOnPath } from './mongod.ts';
import { mongodbEngine } from './mongodb-engine.ts';
import { postgresByApt, postgresOnPath } from './postgres.ts';
import { redisByApt, redisOnPath, valkeyByPip } from './redis-server.ts';
import { topologyWay } from './redis-topology.ts';
import { replicaSetWay } from './replica-set.ts';
import { secantusByPip } from './secantus.ts';

/** The servers for tests and rigs. `stop` ends those that were started, and waits until they are gone. */
export interface Services {
  mongodb: Service;
  redis: Service;
  postgres: Service;
  stop(): Promise<void>;
}

/** `none` starts nothing, for runs without services. Servers named by a URL are used all the same. */
const SWITCH = 'TROUPE_TEST_SERVICES';
/** Name of the one way to take, such as `SecantusDB` or `Valkey`. */
const CHOSEN = {
  mongodb: 'TROUPE_TEST_MONGODB',
  redis: 'TROUPE_TEST_REDIS',
  postgres: 'TROUPE_TEST_POSTGRES',
} as const;

/** Taken only if chosen by name: they take long to start, or are slow. */
const CHOSEN_ONLY: Record<ComposeService, readonly Way[]> = {
  mongodb: [anyMongod, replicaSetWay],
  redis: [topologyWay('Redis Cluster'), topologyWay('Redis Sentinel')],
  postgres: [],
};

export async function startServices(env: NodeJS.ProcessEnv = process.env): Promise<Services> {
  const plan = planWays(env);
  const [mongodb, redis, postgres] = await Promise.all([
    firstWay(plan.mongodb),
    firstWay(plan.redis),
    firstWay(plan.postgres),
  ]);
  return {
    mongodb,
    redis,
    postgres,
    async stop() {
      await Promise.all(
        [mongodb, redis, postgres].map(async (each) => ('missing' in each ? undefined : await each.stop())),
      );
    },
  };
}

/** The ways to try, in order: the user's URL first, then the cheapest. */
export function planWays(env: NodeJS.ProcessEnv): Record<ComposeService, Way[]> {
  const mongodbUrl = env['MONGODB_URL'];
  const redisUrl = env['REDIS_URL'];
  const postgresUrl = env['POSTGRES_URL'];
  const urls = { mongodb: mongodbUrl, redis: redisUrl, postgres: postgresUrl };
  const wanted = (['mongodb', 'redis', 'postgres'] as const).filter((service) => !urls[service]);
  const compose = createCompose(wanted);
  const off: Way = { name: SWITCH, open: async () => ({ not: 'none' }) };
  function plan(service: ComposeService, name: string, url: string | undefined, own: Way[]): Way[] {
    if (url) return [named(name, url)];
    return env[SWITCH] === 'none' ? [off] : [byCompose(compose, service), ...own];
  }
  function chosen(service: ComposeService, ways: Way[]): Way[] {
    const wanted = env[CHOSEN[service]];
    if (!wanted) return ways;
    const all = [...ways, ...CHOSEN_ONLY[service]];
    const found = all.find(({ name }) => name === wanted);
    const known = all.map(({ name }) => name).join(', ');
    return [found ?? { name: wanted, open: async () => ({ not: `unknown; there are ${known}` }) }];
  }
  const mongodb = plan('mongodb', 'MONGODB_URL', mongodbUrl, [mongodOnPath, mongodbEngine, secantusByPip]);
  const redis = plan('redis', 'REDIS_URL', redisUrl, [redisOnPath, redisByApt, valkeyByPip]);
  const postgres = plan('postgres', 'POSTGRES_URL', postgresUrl, [postgresOnPath, postgresByApt]);
  return {
    mongodb: chosen('mongodb', mongodb),
    redis: chosen('redis', redis),
    postgres: chosen('postgres', postgres),
  };
}

function named(name: string, url: string): Way {
  return { name, open: async () => ({ url, how: name, stop: async () => {} }) };
}

function byCompose(compose: Compose, service: ComposeService): Way {
  return { name: 'docker compose', open: () => compose.open(service) };
}

/** Environment variables for the command. A missing service has no URL. */
export function serviceUrls({
  mongodb,
  redis,
  postgres,
}: Services): Record<'MONGODB_URL' | 'REDIS_URL' | 'POSTGRES_URL', string | undefined> {
  return {
    MONGODB_URL: 'missing' in mongodb ? undefined : mongodb.url,
    REDIS_URL: 'missing' in redis ? undefined : redis.url,
    POSTGRES_URL: 'missing' in postgres ? undefined : postgres.url,
  };
}

/** One line: the services used, or why there are none. */
export function describeServices({ mongodb, redis, postgres }: Services): string {
  return `services: MongoDB: ${describe(mongodb)}, Redis: ${describe(redis)}, PostgreSQL: ${describe(postgres)}`;
}

function describe(service: Service): string {
  return 'missing' in service ? `none (${service.missing})` : service.how;
}
