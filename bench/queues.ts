import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import pg from 'pg';
import { Redis } from 'ioredis';
import { NO_METRICS } from '../src/events/metrics.ts';
import { systemClock as clock } from '../src/base/clock.ts';
import { ActorAddress } from '../src/events/index.ts';
import { createStorePace } from '../src/queue/fair-share.ts';
import { createTroupe } from '../src/library/runtime/create-troupe.ts';
import { postgresQueue } from '../packages/postgres/src/index.ts';
import type { Queue, QueueServer } from '../src/queue/queue-server.ts';
import { redisQueue } from '../src/library/runtime/redis-queue.ts';
import { ANA, ONE_AGENT, percentile, stop, turnWatcher } from './support.ts';

/**
 * `npm run bench:queues`: the queue in PostgreSQL beside that in Redis, on the same machine in the same run, by turns. The
 * store of both is the same PostgreSQL, so the turns differ by the queue alone.
 *  - wakes/s: 64 clients, each waits until its wake was served by a handler that does nothing
 *  - pile: as many wakes as that, added before the worker starts
 *  - latency: from a wake to its handler, nothing else at work
 *  - turns/s: 64 clients, each waits for its turn; an API process and a worker in one
 *  - idle: processor time of a worker with nothing to do
 */
const POSTGRES_URL = process.env['POSTGRES_URL'];
const REDIS_URL = process.env['REDIS_URL'];
const CLIENTS = 64;
const WAKES = 3_000;
const ALONE = 100;
const TURNS = 600;
const IDLE_MS = 10_000;
const ROUNDS = 3;

type Figures = Record<string, number>;

if (!POSTGRES_URL || !REDIS_URL) {
  console.error('no PostgreSQL or no Redis: run `npm run bench:queues`, or set POSTGRES_URL and REDIS_URL');
  process.exit(1);
}
await main(POSTGRES_URL, REDIS_URL);

async function main(server: string, redis: string): Promise<void> {
  const schema = `bench_${randomUUID().slice(0, 8)}`;
  const named = new URL(server);
  named.searchParams.set('schema', schema);
  const url = named.href;
  const client = new pg.Client(server);
  await client.connect();
  await client.query(`CREATE SCHEMA "${schema}_queue"`);
  named.searchParams.set('schema', `${schema}_queue`);
  const places = [
    ['Redis', { postgres: url, redis, prefix: schema }, redisQueue(redis, schema)],
    ['PostgreSQL', { postgres: url }, postgresQueue(named.href)],
  ] as const;
  const found = new Map<string, Figures[]>();
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [name, options, queue] of places) {
      const figures = {
        ...(await wakes(queue, redis, client)),
        ...(await turns(options, `${round}${name[0]}`)),
        ...(round === ROUNDS ? await idle(options, redis, client) : {}),
      };
      // The first round is a warm-up.
      if (round > 0) found.set(name, [...(found.get(name) ?? []), figures]);
    }
  }
  print(found);
  await client.query(`DROP SCHEMA "${schema}" CASCADE; DROP SCHEMA "${schema}_queue" CASCADE`);
  await client.end();
}

/** Of the servers, in ms; that of PostgreSQL as far as its processes are on this machine. */
async function serverMs(redis: string, client: pg.Client): Promise<number> {
  const connection = new Redis(redis);
  const info = await connection.info('cpu');
  connection.disconnect();
  const used = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  const { rows } = await client.query<{ pid: number }>('SELECT pid FROM pg_stat_activity');
  const ticks = rows.map(({ pid }) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      return Number(fields[11]) + Number(fields[12]);
    } catch {
      // On another machine, or gone.
      return 0;
    }
  });
  return (
    1_000 * (used('used_cpu_user') + used('used_cpu_sys')) + 10 * ticks.reduce((sum, each) => sum + each, 0)
  );
}

function nodeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function open(server: QueueServer): Promise<Queue> {
  return server.open({
    clock,
    caps: {},
    leaseMs: 30_000,
    mostWaiting: 100_000,
    metrics: NO_METRICS,
    onWarning: stop,
    onDeaf: () => stop('deaf', 'queue'),
    pace: createStorePace(1_024, clock),
  });
}

async function wakes(server: QueueServer, redis: string, client: pg.Client): Promise<Figures> {
  const [api, worker] = [await open(server), await open(server)];
  const ends = new Map<string, () => void>();
  let left = WAKES;
  const all = Promise.withResolvers<void>();
  const actorOf = (at: number) =>
    ActorAddress.parse({ tenant: 'default', conversation: `c${at}`, agent: 'a' });
  for (let at = 0; at < WAKES; at += CLIENTS)
    await Promise.all(Array.from({ length: CLIENTS }, (_, each) => api.router.wake(actorOf(at + each))));
  const piled = performance.now();
  worker.router.start(
    async ({ conversation }) => {
      ends.get(conversation)?.();
      if (--left <= 0) all.resolve();
      return { kind: 'done' };
    },
    { concurrency: CLIENTS, onError: (error) => stop(error, 'handler') },
  );
  await all.promise;
  const pile = (1_000 * WAKES) / (performance.now() - piled);

  const served = async (at: number) => {
    const { conversation } = actorOf(at);
    const ended = new Promise<void>((resolve) => ends.set(conversation, resolve));
    const began = performance.now();
    await api.router.wake(actorOf(at));
    await ended;
    return performance.now() - began;
  };
  const [node, servers] = [nodeMs(), await serverMs(redis, client)];
  const began = performance.now();
  let next = WAKES;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < 2 * WAKES) await served(next++);
    }),
  );
  const perSecond = (1_000 * WAKES) / (performance.now() - began);
  const cost = { node: nodeMs() - node, servers: (await serverMs(redis, client)) - servers };
  const alone: number[] = [];
  for (let at = 0; at < ALONE; at += 1) alone.push(await served(3 * WAKES + at));
  await worker.router.close();
  await api.router.close();
  await Promise.all([api.close(), worker.close()]);
  return {
    'wakes/s': perSecond,
    'wakes/s of a pile': pile,
    'us of Node, a wake': (1_000 * cost.node) / WAKES,
    'us of the servers, a wake': (1_000 * cost.servers) / WAKES,
    'ms to the handler, p50': percentile(alone, 0.5),
    'ms to the handler, p95': percentile(alone, 0.95),
  };
}

async function turns(options: object, round: string): Promise<Figures> {
  await using api = await createTroupe(ONE_AGENT, { ...options, work: false, onWarning: stop });
  await using _worker = await createTroupe(ONE_AGENT, { ...options, onWarning: stop });
  const ended = turnWatcher(api);
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < TURNS) {
        const conversation = `turn-${round}-${next++}`;
        const done = ended(conversation);
        await api.send(conversation, { author: ANA, content: 'Hello' });
        await done;
      }
    }),
  );
  return { 'turns/s': (1_000 * TURNS) / (performance.now() - began) };
}

async function idle(options: object, redis: string, client: pg.Client): Promise<Figures> {
  await using _worker = await createTroupe(ONE_AGENT, { ...options, onWarning: stop });
  await clock.sleep(2_000);
  const [node, servers] = [nodeMs(), await serverMs(redis, client)];
  await clock.sleep(IDLE_MS);
  const seconds = IDLE_MS / 1_000;
  return {
    'ms of Node a second, idle worker': (nodeMs() - node) / seconds,
    'ms of the servers a second, idle worker': ((await serverMs(redis, client)) - servers) / seconds,
  };
}

function print(found: ReadonlyMap<string, Figures[]>): void {
  const names = [...found.keys()];
  const rows = Object.keys(found.get(names[0] ?? '')?.at(-1) ?? {});
  const shown = (value: number) => value.toFixed(value < 100 ? 2 : 0).padStart(12);
  console.log(`${''.padEnd(42)}${names.map((name) => name.padStart(12)).join('')}`);
  for (const row of rows) {
    const values = names.map((name) =>
      percentile(
        (found.get(name) ?? []).flatMap((figures) => figures[row] ?? []),
        0.5,
      ),
    );
    console.log(`${row.padEnd(42)}${values.map(shown).join('')}`);
  }
  console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)}`);
}
