import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { openRedis, primariesOf } from '../src/queue/redis/connect-redis.ts';
import { findValkey } from '../test/services/redis-server.ts';
import { startTopology, type TopologyKind } from '../test/services/redis-topology.ts';
import { freePort } from '../test/services/server-process.ts';

/** The queue's server, with two ways to lose its data. */
export interface RigRedis {
  /** Null: the queue is in the database. */
  url: string | null;
  /** True if the process is ours, so that its file may be cut. */
  own: boolean;
  wipe(): Promise<void>;
  /** Kills the server, cuts the end off its append-only file, and restarts it on the same port. Own servers only. */
  cutFile(keep: number): Promise<void>;
  /** In place of `cutFile`, where there is a replica: kills the primary, and starts it again when it is replaced. */
  failOver?: () => Promise<void>;
  close(): Promise<void>;
}

const START_MS = 5_000;
const REPLACED_MS = 60_000;

/** A server of our own with an append-only file in `dir`; null without the command. */
export async function startOwnRedis(
  dir: string,
  command = 'redis-server',
): Promise<(RigRedis & { url: string }) | null> {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let server = start();
  if (!(await isUp(server))) return null;

  function start(): ChildProcess {
    const options = { port, bind: '127.0.0.1', dir, save: '', appendonly: 'yes', appendfsync: 'everysec' };
    const args = Object.entries({ ...options, 'maxmemory-policy': 'noeviction' }).flatMap(([name, value]) => [
      `--${name}`,
      String(value),
    ]);
    const child = spawn(command, args, { stdio: 'ignore' });
    child.on('error', () => {}); // `isUp` reports it.
    return child;
  }

  async function isUp(child: ChildProcess): Promise<boolean> {
    const until = Date.now() + START_MS;
    const client = probe(url);
    try {
      while (Date.now() < until && child.pid !== undefined && child.exitCode === null) {
        const answer = await client.ping().catch(() => null);
        if (answer === 'PONG') return true;
        await wait(20);
      }
      return false;
    } finally {
      client.disconnect();
    }
  }

  return {
    url,
    own: true,
    wipe: () => flush(url, 'all'),
    async cutFile(keep) {
      await end(server, 'SIGKILL');
      for (const file of appendFiles(dir)) truncateSync(file, Math.floor(statSync(file).size * keep));
      server = start();
      if (!(await isUp(server))) throw new Error('redis-server does not start again after its file was cut');
    },
    close: () => end(server, 'SIGTERM'),
  };
}

/** Valkey in place of Redis. */
export async function startOwnValkey(dir: string): Promise<RigRedis> {
  const found = await findValkey();
  const server = 'not' in found ? null : await startOwnRedis(dir, found.command);
  if (!server) throw new Error(`no Valkey: ${'not' in found ? found.not : 'it does not start'}`);
  return server;
}

/** A Cluster or Sentinels of our own. The keys of `prefix` are on the primary that is killed. */
export async function startReplicated(kind: TopologyKind, prefix: string): Promise<RigRedis> {
  const topology = await startTopology(kind);
  if ('not' in topology) throw new Error(topology.not);
  const { url, primaryOf, stop } = topology;
  const key = `{${prefix}}`;
  return {
    url,
    own: true,
    wipe: () => flush(url, 'all'),
    cutFile: () => Promise.reject(new Error('its servers have no append-only file')),
    async failOver() {
      const primary = await primaryOf(key);
      await primary.kill();
      const until = Date.now() + REPLACED_MS;
      while ((await primaryOf(key).catch(() => primary)) === primary) {
        if (Date.now() > until)
          throw new Error(`no replica replaced the primary within ${REPLACED_MS / 1_000} s`);
        await wait(100);
      }
      await primary.start();
    },
    close: stop,
  };
}

/** A foreign server: its database may be wiped, nothing more. */
export function foreignRedis(url: string): RigRedis {
  return {
    url,
    own: false,
    wipe: () => flush(url, 'database'),
    cutFile: () => Promise.reject(new Error('the append-only file of a foreign server is not ours to cut')),
    close: () => Promise.resolve(),
  };
}

/** A reconnecting client would hide the fault under test. */
function probe(url: string): Redis {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => 20 });
  client.on('error', () => {}); // Each command reports its own error.
  return client;
}

async function flush(url: string, what: 'all' | 'database'): Promise<void> {
  const client = openRedis(url, { maxRetriesPerRequest: 5, lazyConnect: true });
  try {
    await client.connect();
    const servers = primariesOf(client);
    await Promise.all(servers.map((each) => (what === 'all' ? each.flushall() : each.flushdb())));
  } finally {
    client.disconnect();
  }
}

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  return ended;
}

/**
 * The growing parts. The base part is written only when Redis rewrites the file; a cut in it would be damage, not
 * loss.
 */
function appendFiles(dir: string): string[] {
  const folder = path.join(dir, 'appendonlydir');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.incr.aof'))
    .map((name) => path.join(folder, name));
}
