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
  const { MONGODB_URL, REDIS_URL } = env;
  if (!MONGODB_URL || !REDIS_URL) return null;
  const [mongodb, redis] = [await watchMongodb(), await watchRedis()];
  const { url } = newDatabaseUrl();
  const prefix = `weigh-${randomUUID().slice(0, 8)}`;
  const [plain] = TURNS;
  if (!plain) return null;
  const troupe = await createTroupe(plain.company, { mongodb: url, redis: REDIS_URL, prefix });
  try {
    const door = await plain.open({ troupe, clock: systemClock });
    const room = await door.enter('room');
    const rounds: Commands[] = [];
    for (let turn = 0; turn < WARM_UP + MEASURED; turn++) {
      mongodb.take();
      redis.take();
      await room.turn(`Message ${turn}, please note it.`);
      await pause(QUIET_MS);
      rounds.push({ mongodb: mongodb.take(), redis: redis.take() });
    }
    const measured = rounds.slice(WARM_UP);
    return {
      mongodb: medians(measured.map((round) => round.mongodb)),
      redis: medians(measured.map((round) => round.redis)),
    };
  } finally {
    await troupe.close();
    await dropDatabase(url);
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

/** As the client sends them: a script is one command. */
async function watchRedis(): Promise<Counter> {
  const { Redis } = await import('ioredis');
  const counts = counter();
  const sendCommand = Reflect.get(Redis.prototype, 'sendCommand') as (
    this: InstanceType<typeof Redis>,
    ...given: Parameters<InstanceType<typeof Redis>['sendCommand']>
  ) => unknown;
  Redis.prototype.sendCommand = function (command, stream) {
    if (!WAITING.has(command.name)) counts.add(command.name);
    return sendCommand.call(this, command, stream);
  };
  return counts;
}
