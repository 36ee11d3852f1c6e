import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createTroupe, systemClock } from '../src/index.ts';
import { dropKeys } from '../bench/distributed/stage.ts';
import { dropDatabase, newDatabaseUrl } from '../bench/distributed/bench-database.ts';
import { TURNS } from './turns.ts';
import { median } from './weigh.ts';

/** Commands of a plain turn of the distributed mode, counted by name. */
export interface Commands {
  mongodb: Record<string, number>;
  redis: Record<string, number>;
  /** Round trips to Redis: commands of a connection that are sent in the same turn of the event loop go together. */
  redisCalls: number;
  /** Round trips on PostgreSQL in place of MongoDB; null without `POSTGRES_URL`. */
  postgres: Record<string, number> | null;
}

const WARM_UP = 10;
/** Odd: the median of counts is one of them. */
const MEASURED = 21;
/** Commands that follow a turn within this time belong to it. */
const QUIET_MS = 300;
/** Of a worker that waits for work, and of connections that are kept. */
const WAITING = new Set(['bzpopmin', 'ping', 'info', 'client', 'hello', 'subscribe', 'psubscribe']);

/** Null without `MONGODB_URL` and `REDIS_URL`. */
export async function countCommands(env: NodeJS.ProcessEnv): Promise<Commands | null> {
  const { MONGODB_URL, REDIS_URL, POSTGRES_URL } = env;
  if (!MONGODB_URL || !REDIS_URL) return null;
  const counters = {
    mongodb: await watchMongodb(),
    ...(await watchRedis()),
    postgres: await watchPostgres(),
  };
  const { url } = newDatabaseUrl();
  try {
    const onMongodb = await countTurns({ mongodb: url, redis: REDIS_URL }, counters);
    const { mongodb = {}, redis = {}, redisCalls = {} } = onMongodb;
    const counted = { mongodb, redis, redisCalls: redisCalls['call'] ?? 0 };
    if (!POSTGRES_URL) return { ...counted, postgres: null };
    const postgres = await onOwnSchema(POSTGRES_URL, async (own) => {
      const counts = await countTurns({ postgres: own, redis: REDIS_URL }, counters);
      return counts.postgres ?? {};
    });
    return { ...counted, postgres };
  } finally {
    await dropDatabase(url);
  }
}

async function onOwnSchema<T>(url: string, work: (url: string) => Promise<T>): Promise<T> {
  const own = new URL(url);
  const schema = `weigh-${randomUUID().slice(0, 8)}`;
  own.searchParams.set('schema', schema);
  try {
    return await work(own.href);
  } finally {
    const { default: pg } = await import('pg');
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
    await client.end();
  }
}

/** The median of each command over some plain turns, by the names of the counters. */
async function countTurns<K extends string>(
  services: { mongodb?: string; postgres?: string; redis: string },
  counters: Record<K, Counter>,
): Promise<Partial<Record<K, Record<string, number>>>> {
  const [plain] = TURNS;
  if (!plain) return {};
  const prefix = `weigh-${randomUUID().slice(0, 8)}`;
  const troupe = await createTroupe(plain.company, { ...services, prefix });
  const each = Object.entries<Counter>(counters);
  const take = () => Object.fromEntries(each.map(([name, counter]) => [name, counter.take()]));
  try {
    const door = await plain.open({ troupe, clock: systemClock });
    const room = await door.enter(`room-${prefix}`);
    const rounds: Record<string, Record<string, number>>[] = [];
    for (let turn = 0; turn < WARM_UP + MEASURED; turn++) {
      take();
      await room.turn(`Message ${turn}, please note it.`);
      await pause(QUIET_MS);
      rounds.push(take());
    }
    const measured = rounds.slice(WARM_UP);
    const of = (name: string) => medians(measured.map((round) => round[name] ?? {}));
    return Object.fromEntries(each.map(([name]) => [name, of(name)])) as Partial<
      Record<K, Record<string, number>>
    >;
  } finally {
    await troupe.close();
    await dropKeys(prefix);
  }
}

function medians(rounds: readonly Record<string, number>[]): Record<string, number> {
  const names = [...new Set(rounds.flatMap((round) => Object.keys(round)))].toSorted();
  const counts = names.map((name): [string, number] => [
    name,
    median(rounds.map((round) => round[name] ?? 0)),
  ]);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

interface Counter {
  add(name: string): void;
  take(): Record<string, number>;
}

function counter(): Counter {
  let counts: Record<string, number> = {};
  return {
    add(name) {
      counts[name] = (counts[name] ?? 0) + 1;
    },
    take() {
      const taken = counts;
      counts = {};
      return taken;
    },
  };
}

/** By the driver's command monitoring, of every client that connects from now on. */
async function watchMongodb(): Promise<Counter> {
  const { MongoClient } = await import('mongodb');
  const counts = counter();
  const connect = Reflect.get(MongoClient.prototype, 'connect') as (
    this: InstanceType<typeof MongoClient>,
  ) => Promise<InstanceType<typeof MongoClient>>;
  const watched = new WeakSet<object>();
  MongoClient.prototype.connect = function () {
    if (!watched.has(this)) {
      watched.add(this);
      Object.assign(this, { monitorCommands: true });
      this.on('commandStarted', ({ commandName, command }) => {
        const collection = (command as Record<string, unknown>)[commandName];
        counts.add(typeof collection === 'string' ? `${commandName} ${collection}` : commandName);
      });
    }
    return connect.call(this);
  };
  return counts;
}

/** As the client sends them, alone or with others: a script is one command. */
async function watchRedis(): Promise<{ redis: Counter; redisCalls: Counter }> {
  const { Redis } = await import('ioredis');
  const redis = counter();
  const redisCalls = counter();
  const sending = new Set<object>();
  const sendCommand = Reflect.get(Redis.prototype, 'sendCommand') as (
    this: InstanceType<typeof Redis>,
    ...given: Parameters<InstanceType<typeof Redis>['sendCommand']>
  ) => unknown;
  Redis.prototype.sendCommand = function (command, stream) {
    if (!WAITING.has(command.name)) {
      redis.add(command.name);
      if (!sending.has(this)) {
        redisCalls.add('call');
        sending.add(this);
        setImmediate(() => sending.delete(this));
      }
    }
    return sendCommand.call(this, command, stream);
  };
  return { redis, redisCalls };
}

/** Each query of a client is one round trip. Named by its first word and the tables that it names. */
async function watchPostgres(): Promise<Counter> {
  const { default: pg } = await import('pg');
  const counts = counter();
  const query = Reflect.get(pg.Client.prototype, 'query') as (...given: unknown[]) => unknown;
  Object.assign(pg.Client.prototype, {
    query(...given: unknown[]) {
      const [first] = given;
      const text = typeof first === 'string' ? first : ((first as { text?: string }).text ?? '');
      const [verb = ''] = text.trim().split(/\s/);
      const tables = new Set([...text.matchAll(/"\.(\w+)/g)].map(([, table]) => table));
      counts.add([verb, ...tables].join(' '));
      return Reflect.apply(query, this, given);
    },
  });
  return counts;
}
