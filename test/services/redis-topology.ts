import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Redis } from 'ioredis';
import { askRedis } from './ask-redis.ts';
import type { Found, Way } from './first-way.ts';
import { findOnPath, runCommand } from './run-command.ts';
import { openServerGroup, type ServerNode, until } from './server-group.ts';
import { flags, freePort } from './server-process.ts';

/**
 * Several servers of Redis that replace a primary which is gone: a Cluster of three primaries with a replica each, or a
 * primary with a replica and three Sentinels.
 */
export interface RedisTopology {
  url: string;
  version: string;
  folder: string;
  /** The node that holds the key now. */
  primaryOf: (key: string) => Promise<ServerNode>;
  stop: () => Promise<void>;
}

export type TopologyKind = 'Redis Cluster' | 'Redis Sentinel';

/** A primary counts as gone after this long without an answer. */
const GONE_AFTER_MS = 2_000;
const READY_WITHIN_MS = 60_000;
/** The name of the primary for the Sentinels. */
const PRIMARY = 'troupe';
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

function nodeAt(nodes: readonly ServerNode[], port: number): ServerNode {
  const node = nodes.find((each) => each.port === port);
  if (!node) throw new Error(`no node of ours has the port ${port}`);
  return node;
}

function openGroup(server: string) {
  const group = openServerGroup('redis-group');
  let first = 0;

  /** Lines of its own make a server a Sentinel. */
  async function add(options: Record<string, string | number>, sentinel: string[] = []): Promise<ServerNode> {
    const isSentinel = sentinel.length > 0;
    const configOf = (folder: string) => path.join(folder, 'sentinel.conf');
    const node = await group.add({
      command: server,
      prepare({ folder }) {
        if (isSentinel) writeFileSync(configOf(folder), `${sentinel.join('\n')}\n`);
      },
      args: ({ port, folder }) => [
        ...(isSentinel ? [configOf(folder), '--sentinel'] : []),
        ...flags({ ...options, port, dir: folder }),
      ],
      ask: (port) => askRedis(port, (redis) => redis.ping()),
    });
    first ||= node.port;
    return node;
  }

  async function topology(of: Pick<RedisTopology, 'url' | 'primaryOf'>): Promise<RedisTopology> {
    const info = await askRedis(first, (redis) => redis.info('server'));
    const version = /redis_version:(\S+)/.exec(info)?.[1] ?? 'of unknown version';
    return { ...of, version, folder: group.folder, stop: group.stop };
  }

  return { add, stop: group.stop, topology };
}

function firstAnswer<T>(nodes: readonly ServerNode[], question: (redis: Redis) => Promise<T>): Promise<T> {
  return Promise.any(nodes.map((node) => askRedis(node.port, question)));
}
