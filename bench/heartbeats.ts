import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { StatementSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import pg from 'pg';
import * as z from 'zod';
import { createTroupe, defineTool, type TroupeOptions } from '../src/index.ts';
import { ANA } from './support.ts';

/**
 * `npm run bench:heartbeats`: what it costs that running turns keep their leases, by length of the lease, on each store that is
 * there. Every turn waits in a tool, so the process does nothing but renew and sweep. Without turns: an idle worker.
 *  - a second: statements of SQLite or PostgreSQL, operations of MongoDB, commands of Redis
 *  - node: processor time of this process, ms a second
 */
const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    turns: { type: 'string', default: '200' },
  },
});
const WINDOW_MS = 1_000 * Number(values.seconds);
const TURNS = Number(values.turns);
const LEASES_MS = [30_000, 10_000];
/** By then the first sweep of the process, which looks at everything, is over. */
const SETTLE_MS = 2_000;

let statements = 0;
countCalls(StatementSync.prototype, ['run', 'get', 'all', 'iterate']);
countCalls(pg.Client.prototype, ['query']);

function countCalls(prototype: object, names: readonly string[]): void {
  for (const name of names) {
    const method = Reflect.get(prototype, name) as (...args: unknown[]) => unknown;
    Reflect.set(prototype, name, function counted(this: unknown, ...args: unknown[]) {
      statements += 1;
      return method.apply(this, args);
    });
  }
}

interface Place {
  name: string;
  options: TroupeOptions;
  /** Operations so far, by where. */
  readonly count: () => Promise<Record<string, number>>;
  close(): Promise<void>;
}

function sqlite(): Place {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-bench-'));
  return {
    name: 'SQLite',
    options: { data },
    count: async () => ({ store: statements }),
    close: async () => rmSync(data, { recursive: true, force: true }),
  };
}

async function mongodb(url: string, redis: string): Promise<Place> {
  const name = `bench_${randomUUID().slice(0, 8)}`;
  const client = await MongoClient.connect(url);
  const connection = new Redis(redis);
  const named = new URL(url);
  named.pathname = `/${name}`;
  return {
    name: 'MongoDB and Redis',
    options: { mongodb: named.href, redis, prefix: name },
    async count() {
      const { opcounters } = await client.db('admin').command({ serverStatus: 1 });
      const operations = Object.values(opcounters as Record<string, number>);
      const commands = /total_commands_processed:(\d+)/.exec(await connection.info('stats'))?.[1];
      return { store: operations.reduce((sum, each) => sum + each, 0), redis: Number(commands) };
    },
    async close() {
      await client.db(name).dropDatabase();
      await client.close();
      connection.disconnect();
    },
  };
}

function postgres(url: string): Place {
  const schema = `bench_${randomUUID().slice(0, 8)}`;
  const named = new URL(url);
  named.searchParams.set('schema', schema);
  return {
    name: 'PostgreSQL',
    options: { postgres: named.href },
    count: async () => ({ store: statements }),
    async close() {
      const client = new pg.Client(url);
      await client.connect();
      await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
      await client.end();
    },
  };
}

async function measure({ options, count }: Place, leaseMs: number, turns: number) {
  const released = Promise.withResolvers<void>();
  const all = Promise.withResolvers<void>();
  let waiting = 0;
  const wait = defineTool({
    name: 'wait',
    description: 'Waits.',
    schema: z.object({}),
    async run() {
      if ((waiting += 1) === turns) all.resolve();
      await released.promise;
      return 'Done.';
    },
  });
  const script = { rules: [{ when: { step: 1 }, calls: [{ name: 'wait', args: {} }] }, { reply: 'Done.' }] };
  const agents = [{ id: 'agent', provider: 'scripted', script, tools: ['wait'] }] as const;
  await using troupe = await createTroupe(
    { agents, tools: [wait], limits: { leaseMs } },
    { ...options, concurrency: turns + 1, onWarning: (error, where) => console.error(where, String(error)) },
  );
  for (let at = 0; at < turns; at += 1)
    await troupe.send(`c-${leaseMs}-${turns}-${at}`, { author: ANA, to: ['agent'], content: 'Wait.' });
  if (turns > 0) await all.promise;
  await sleep(SETTLE_MS);
  const [before, cpu, began] = [await count(), process.cpuUsage(), performance.now()];
  await sleep(WINDOW_MS);
  const used = process.cpuUsage(cpu);
  const seconds = (performance.now() - began) / 1_000;
  const after = await count();
  released.resolve();
  await troupe.idle();
  const rates = Object.entries(after).map(([where, n]) => [where, (n - (before[where] ?? 0)) / seconds]);
  return { ...Object.fromEntries(rates), node: (used.user + used.system) / 1_000 / seconds };
}

const { MONGODB_URL, REDIS_URL, POSTGRES_URL } = process.env;
const places = [
  sqlite(),
  ...(MONGODB_URL && REDIS_URL ? [await mongodb(MONGODB_URL, REDIS_URL)] : []),
  ...(POSTGRES_URL ? [postgres(POSTGRES_URL)] : []),
];
for (const place of places) {
  if (values.store !== undefined && !place.name.startsWith(values.store)) continue;
  for (const turns of [0, TURNS]) {
    for (const leaseMs of LEASES_MS) {
      const figures = Object.entries(await measure(place, leaseMs, turns));
      const shown = figures.map(([name, value]) => `${name} ${Number(value).toFixed(1)}`).join(', ');
      console.log(`${place.name}, ${turns} turns, lease ${leaseMs / 1_000} s: ${shown}`);
    }
  }
  await place.close();
}
