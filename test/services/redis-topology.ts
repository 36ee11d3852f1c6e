import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { askRedis } from './ask-redis.ts';
import type { Found, Way } from './first-way.ts';
import { findOnPath, lastLine, runCommand } from './run-command.ts';
import { flags, freePort } from './server-process.ts';

/**
 * Several servers of Redis that replace a primary which is gone: a Cluster of three primaries with a replica each, or a
 * primary with a replica and three Sentinels.
 *
 * Owns the processes, their folder, and one guard as in `server-process.ts`: however this process ends, the guard kills
 * the servers by the ids in their files and removes the folder.
 */
export interface RedisTopology {
  url: string;
  version: string;
  folder: string;
  /** The node that holds the key now. */
  primaryOf: (key: string) => Promise<RedisNode>;
  stop: () => Promise<void>;
}

/** One server, which keeps its port and folder when it is started again. */
export interface RedisNode {
  port: number;
  start: () => Promise<void>;
  kill: () => Promise<void>;
  pause: () => void;
  resume: () => void;
}

export type TopologyKind = 'Redis Cluster' | 'Redis Sentinel';

/** A primary counts as gone after this long without an answer. */
const GONE_AFTER_MS = 2_000;
const READY_WITHIN_MS = 60_000;
const ASK_AGAIN_MS = 50;
/** The name of the primary for the Sentinels. */
const PRIMARY = 'troupe';
const GUARD =
  'read -r _ || { for f in "$1"/*/pid; do kill -9 "$(cat "$f")"; done; sleep 1; rm -rf -- "$1"; } 2>/dev/null';
const START = { 'Redis Cluster': startCluster, 'Redis Sentinel': startSentinels };

export function topologyWay(kind: TopologyKind): Way {
  return {
    name: kind,
    async open() {
      const topology = await startTopology(kind);
      return 'not' in topology ? topology : foundOf(kind, topology);
    },
  };
}

function foundOf(kind: TopologyKind, { url, version, stop }: RedisTopology): Found {
  return { url, how: `${kind} of redis-server ${version} (PATH)`, stop };
}

export async function startTopology(kind: TopologyKind): Promise<RedisTopology | { not: string }> {
  const server = findOnPath('redis-server');
  const cli = findOnPath('redis-cli');
  if (!server || !cli) return { not: `${server ? 'redis-cli' : 'redis-server'} is not on PATH` };
  const group = openGroup(server);
  try {
    return await START[kind](group, cli);
  } catch (error) {
    await group.stop();
    throw error;
  }
}

type Group = ReturnType<typeof openGroup>;

const IN_MEMORY = { bind: '127.0.0.1', 'maxmemory-policy': 'noeviction', appendonly: 'no', save: '' };
/** A replica is in step at once, not after the 5 s in which others might join. */
const REPLICA = { 'repl-diskless-sync-delay': 0 };

async function startCluster(group: Group, cli: string): Promise<RedisTopology> {
  const nodes = await Promise.all(
    Array.from({ length: 6 }, async () =>
      group.add({
        ...IN_MEMORY,
        ...REPLICA,
        'cluster-enabled': 'yes',
        'cluster-config-file': 'nodes.conf',
        'cluster-port': await freePort(),
        'cluster-node-timeout': GONE_AFTER_MS,
      }),
    ),
  );
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
  const created = await runCommand(cli, create, { timeoutMs: READY_WITHIN_MS });
  if (!created.ok) throw new Error(`the Cluster was not created: ${created.reason}`);
  await until('every node knows all slots and all replicas', async () => {
    const views = await Promise.all(
      nodes.map((node) => askRedis(node.port, (redis) => redis.cluster('SLOTS'))),
    );
    return views.every((ranges) => ranges.length === 3 && ranges.every((range) => range.length >= 4));
  });
  return group.topology({
    url: `redis+cluster://${addresses.slice(0, 3).join(',')}`,
    async primaryOf(key) {
      const port = await firstAnswer(nodes, async (redis) => {
        const slot = await redis.cluster('KEYSLOT', key);
        const ranges = await redis.cluster('SLOTS');
        const range = ranges.find(([from, to]) => from <= slot && slot <= to);
        return range?.[2]?.[1] ?? 0;
      });
      return nodeAt(nodes, port);
    },
  });
}

async function startSentinels(group: Group): Promise<RedisTopology> {
  const primary = await group.add({ ...IN_MEMORY, ...REPLICA });
  const replica = await group.add({ ...IN_MEMORY, ...REPLICA, replicaof: `127.0.0.1 ${primary.port}` });
  // Sentinels find the replicas of a primary when they first ask it, and later only every ten seconds.
  await until('the replica follows', async () =>
    (await askRedis(replica.port, (redis) => redis.info('replication'))).includes('master_link_status:up'),
  );
  const watch = [
    `sentinel monitor ${PRIMARY} 127.0.0.1 ${primary.port} 2`,
    `sentinel down-after-milliseconds ${PRIMARY} ${GONE_AFTER_MS}`,
    `sentinel failover-timeout ${PRIMARY} 5000`,
  ];
  const sentinels = await Promise.all([0, 1, 2].map(() => group.add({ bind: '127.0.0.1' }, watch)));
  await until('the Sentinels know each other and the replica', async () => {
    const views = await Promise.all(
      sentinels.map((each) => askRedis(each.port, (redis) => redis.call('SENTINEL', 'MASTER', PRIMARY))),
    );
    return views.map(String).every((view) => /num-slaves,1,num-other-sentinels,2,/.test(view));
  });
  const nodes = [primary, replica];
  return group.topology({
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${PRIMARY}`,
    async primaryOf() {
      const at = await firstAnswer(sentinels, (redis) =>
        redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY),
      );
      return nodeAt(nodes, Number((at as string[])[1]));
    },
  });
}

function nodeAt(nodes: readonly RedisNode[], port: number): RedisNode {
  const node = nodes.find((each) => each.port === port);
  if (!node) throw new Error(`no node of ours has the port ${port}`);
  return node;
}

/** Servers of one folder, each in a folder of its own. */
function openGroup(command: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-redis-group-'));
  const guard = spawn('sh', ['-c', GUARD, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  guard.on('error', () => {}); // No `sh`: the servers still end by `stop`.
  guard.stdin.on('error', () => {});
  const nodes: RedisNode[] = [];

  /** Lines of its own make a server a Sentinel. */
  async function add(options: Record<string, string | number>, sentinel: string[] = []): Promise<RedisNode> {
    const port = await freePort();
    const data = path.join(folder, String(port));
    mkdirSync(data);
    const node = nodeOf(command, { port, data, options, sentinel });
    nodes.push(node);
    await node.start();
    return node;
  }

  async function stop(): Promise<void> {
    await Promise.all(nodes.map((node) => node.kill()));
    rmSync(folder, { recursive: true, force: true });
    guard.stdin.end('done\n');
  }

  async function topology(of: Pick<RedisTopology, 'url' | 'primaryOf'>): Promise<RedisTopology> {
    const info = await askRedis(nodes[0]!.port, (redis) => redis.info('server'));
    return { ...of, version: /redis_version:(\S+)/.exec(info)?.[1] ?? 'of unknown version', folder, stop };
  }

  return { add, stop, topology };
}

interface NodePlan {
  port: number;
  data: string;
  options: Record<string, string | number>;
  sentinel: string[];
}

function nodeOf(command: string, { port, data, options, sentinel }: NodePlan): RedisNode {
  const configFile = path.join(data, 'sentinel.conf');
  const pidFile = path.join(data, 'pid');
  if (sentinel.length > 0) writeFileSync(configFile, `${sentinel.join('\n')}\n`);
  const args = [
    ...(sentinel.length > 0 ? [configFile, '--sentinel'] : []),
    ...flags({ ...options, port, dir: data, pidfile: pidFile }),
  ];
  let server: ChildProcess | null = null;
  let ended = Promise.resolve();

  async function start(): Promise<void> {
    const logFile = path.join(data, 'log');
    const log = openSync(logFile, 'a');
    const child = spawn(command, args, { cwd: data, stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    child.unref();
    let isOver = false;
    ended = new Promise((resolve) => {
      const over = () => {
        isOver = true;
        resolve();
      };
      child.on('exit', over);
      child.on('error', over);
    });
    server = child;
    await until(`redis-server on port ${port}`, async () => {
      if (isOver) throw new Error(`redis-server ended: ${lastLine(readFileSync(logFile, 'utf8'))}`);
      return (await askRedis(node.port, (redis) => redis.ping()).catch(() => null)) === 'PONG';
    });
  }

  async function kill(): Promise<void> {
    server?.ref(); // Keeps this process alive while it waits.
    server?.kill('SIGKILL');
    await ended;
  }

  const node: RedisNode = {
    port,
    start,
    kill,
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
  };
  return node;
}

function firstAnswer<T>(nodes: readonly RedisNode[], question: (redis: Redis) => Promise<T>): Promise<T> {
  return Promise.any(nodes.map((node) => askRedis(node.port, question)));
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${READY_WITHIN_MS / 1_000} s`);
    await delay(ASK_AGAIN_MS);
  }
}
