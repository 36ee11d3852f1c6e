import { setTimeout as wait } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import pg from 'pg';
import { TroupeError } from '../src/base/errors.ts';
import type { ActorRecord, ConversationId, Event } from '../src/events/index.ts';
import { DEFAULT_TENANT } from '../src/events/index.ts';
import type { StoreDriver } from '../src/store/driver.ts';
import { openMongoDriver } from '../src/store/mongo/connect-mongo.ts';
import { openPostgresDriver } from '../packages/postgres/src/index.ts';
import type { Store } from '../src/store/store.ts';
import { withDatabase } from '../test/support/mongo-url.ts';
import type { RigRedis } from './own-redis.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** The rig's own database on a server, and the breakable connection to it. */
export interface RigDatabase {
  /** The option of the processes that names it. */
  option: 'mongodb' | 'postgres';
  /** Direct URL of the server. */
  url: string;
  /** URL for the processes under test. */
  proxiedUrl: string;
  proxy: TcpProxy | null;
  open(): Promise<StoreDriver>;
  drop(): Promise<void>;
}

export async function openRigDatabase(serverUrl: string, name: string): Promise<RigDatabase> {
  const url = withDatabase(serverUrl, name);
  const target = singleHost(url);
  const proxy = target && (await startTcpProxy(target));
  return {
    option: 'mongodb',
    url,
    open: () => openMongoDriver({ url }),
    proxiedUrl: proxy && target ? url.replace(target.written, `127.0.0.1:${proxy.port}`) : url,
    proxy,
    async drop() {
      const client = await MongoClient.connect(url);
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}

/** A schema of its own. */
export async function openRigSchema(serverUrl: string, name: string): Promise<RigDatabase> {
  const url = withSchema(serverUrl, name);
  const { hostname, port } = new URL(serverUrl);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port || 5432) });
  const proxied = new URL(url);
  proxied.host = `127.0.0.1:${proxy.port}`;
  return {
    option: 'postgres',
    url,
    proxiedUrl: proxied.href,
    proxy,
    open: () => openPostgresDriver({ url }),
    async drop() {
      const client = new pg.Client(serverUrl);
      await client.connect();
      await client.query(`DROP SCHEMA IF EXISTS "${name}" CASCADE`);
      await client.end();
    },
  };
}

/** The queue in that schema, in place of Redis. */
export function queueTables(serverUrl: string, name: string): RigRedis {
  return {
    url: null,
    own: false,
    async wipe() {
      const client = new pg.Client(serverUrl);
      await client.connect();
      await client.query(`TRUNCATE "${name}".wakes, "${name}".admission`);
      await client.end();
    },
    cutFile: () => Promise.reject(new Error('the queue has no file of its own')),
    close: () => Promise.resolve(),
  };
}

export function withSchema(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.searchParams.set('schema', name);
  return url.href;
}

/** A driver that discovers its servers would bypass the proxy. */
export function singleHost(url: string): { host: string; port: number; written: string } | null {
  const match = /^mongodb:\/\/(?:[^@/]*@)?(([^,:/@]+)(?::(\d+))?)\//.exec(url);
  if (!match || !url.includes('directConnection=true')) return null;
  const [, written = '', host = '', port = '27017'] = match;
  return { host, port: Number(port), written };
}

export interface History {
  conversation: string;
  events: Event[];
  actors: ActorRecord[];
  corrupt: string[];
}

const ALL = 1_000_000;

/** All stored data, one conversation at a time. */
export async function* readHistories(store: Store): AsyncGenerator<History> {
  for (const { id } of await patiently(() => store.conversations(DEFAULT_TENANT, ALL))) {
    const log = { tenant: DEFAULT_TENANT, conversation: id satisfies ConversationId };
    const history: History = { conversation: id, events: [], actors: [], corrupt: [] };
    history.events = await patiently(() => store.read(log, { after: 0 }));
    for (const actor of await patiently(() => store.listActors(log))) {
      if ('address' in actor) history.corrupt.push(`@${actor.address.agent}: ${JSON.stringify(actor)}`);
      else history.actors.push(actor);
    }
    yield history;
  }
}

const TRIES = 5;

/** Retries a server that is late under this load: lateness is not a finding. */
async function patiently<T>(read: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left--) {
    try {
      return await read();
    } catch (error) {
      if (left === 0 || !(error instanceof TroupeError) || error.policy !== 'retry') throw error;
      await wait(1_000);
    }
  }
}
