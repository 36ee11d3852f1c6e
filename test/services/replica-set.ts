import { MongoClient } from 'mongodb';
import type { Way } from './first-way.ts';
import { findMongod } from './mongod-program.ts';
import { askMongo, mongoUrl } from './mongod.ts';
import { openServerGroup, type ServerNode, until } from './server-group.ts';
import { flags } from './server-process.ts';

/** Three servers of MongoDB that hold the same data and elect one of them. */
export interface ReplicaSet {
  url: string;
  version: string;
  origin: string;
  folder: string;
  primary: () => Promise<ServerNode>;
  /** The primary resigns, and takes no part in elections for ten seconds. */
  stepDown: () => Promise<void>;
  stop: () => Promise<void>;
}

const NAME = 'rs0';
const MEMBERS = 3;
/** A primary counts as gone after this long without an answer; by default it is five times as long. */
const GONE_AFTER_MS = 2_000;
const STEPPED_DOWN_S = 10;

export const replicaSetWay: Way = {
  name: 'MongoDB replica set',
  async open() {
    const set = await startReplicaSet();
    if ('not' in set) return set;
    const { url, version, origin, stop } = set;
    return { url, how: `replica set of three mongod ${version} (${origin})`, stop };
  },
};

export async function startReplicaSet(): Promise<ReplicaSet | { not: string }> {
  const program = await findMongod();
  if ('not' in program) return program;
  const group = openServerGroup('mongod-group');
  try {
    const nodes = await Promise.all(
      Array.from({ length: MEMBERS }, () =>
        group.add({
          command: program.command,
          args: ({ port, folder }) => [
            ...program.args,
            ...flags({ bind_ip: '127.0.0.1', port, dbpath: folder, replSet: NAME, oplogSize: 128 }),
            ...flags({ wiredTigerCacheSizeGB: 0.5 }),
            '--nounixsocket',
            '--quiet',
          ],
          ask: (port) => withAdmin(port, (admin) => admin.command({ ping: 1 })),
        }),
      ),
    );
    const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`);
    await withAdmin(nodes[0]!.port, (admin) =>
      admin.command({
        replSetInitiate: {
          _id: NAME,
          members: hosts.map((host, _id) => ({ _id, host })),
          settings: { electionTimeoutMillis: GONE_AFTER_MS, heartbeatIntervalMillis: 500 },
        },
      }),
    );
    const url = `mongodb://${hosts.join(',')}/?replicaSet=${NAME}`;
    let version = '';
    await until('a primary of the replica set', async () => {
      const primary = await primaryOf(nodes).catch(() => null);
      if (primary) version = await askMongo(primary.port).catch(() => '');
      return version !== '';
    });
    return {
      url,
      version,
      origin: program.origin,
      folder: group.folder,
      primary: () => primaryOf(nodes),
      // Refused while no other member has caught up.
      stepDown: () =>
        until('the primary steps down', () =>
          primaryOf(nodes)
            .then(({ port }) =>
              withAdmin(port, (admin) => admin.command({ replSetStepDown: STEPPED_DOWN_S })),
            )
            .then(
              () => true,
              () => false,
            ),
        ),
      stop: group.stop,
    };
  } catch (error) {
    await group.stop();
    throw error;
  }
}

/** Rejects while there is none. */
function primaryOf(nodes: readonly ServerNode[]): Promise<ServerNode> {
  return Promise.any(
    nodes.map(async (node) => {
      const hello = await withAdmin(node.port, (admin) => admin.command({ hello: 1 }));
      if (hello['isWritablePrimary'] !== true) throw new Error(`the server at ${node.port} is no primary`);
      return node;
    }),
  );
}

type Admin = ReturnType<MongoClient['db']>;

async function withAdmin<T>(port: number, ask: (admin: Admin) => Promise<T>): Promise<T> {
  const client = new MongoClient(mongoUrl(port), {
    serverSelectionTimeoutMS: 5_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 20_000,
  });
  try {
    return await ask(client.db('admin'));
  } finally {
    await client.close();
  }
}
