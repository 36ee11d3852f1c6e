import { randomBytes } from 'node:crypto';
import { MongoClient } from 'mongodb';
import pg from 'pg';
import { test } from 'vitest';
import { withDatabase } from '../support/mongo-url.ts';
import { removeKeysAt } from '../support/redis-keys.ts';
import { type Running, type Workplace, workplace, type WorkplaceOptions } from './harness.ts';
import { freePort } from '../services/server-process.ts';

/** Token of the API, which requires one. */
export const TOKEN = 'site-token';

/** `fetch` with the token of the API. */
export function ask(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${TOKEN}` };
  return fetch(url, { ...init, headers });
}

/** A database and Redis for one test, and the processes on top. */
export interface Site extends AsyncDisposable {
  place: Workplace;
  env: Record<string, string>;
  serve: (args?: string[]) => Promise<Running & { url: string }>;
  /** Starts a worker; with `status` also its status server. */
  worker: (args?: string[], options?: { status?: boolean }) => Promise<Running & { status: string }>;
}

const MONGODB_URL = process.env['MONGODB_URL'];
const REDIS_URL = process.env['REDIS_URL'];
const POSTGRES_URL = process.env['POSTGRES_URL'];
const missing = MONGODB_URL ? (REDIS_URL ? null : 'Redis') : 'MongoDB';
const missingBesidePostgres = POSTGRES_URL ? (REDIS_URL ? null : 'Redis') : 'PostgreSQL';

/** A test that needs both servers. Without them it is skipped under a name that gives the reason. */
export function siteTest(
  name: string,
  run: (site: Site) => Promise<void>,
  options: WorkplaceOptions = {},
): void {
  if (missing !== null) return test.skip(`${name} (skipped: no ${missing})`, () => {});
  test(name, async () => {
    await using site = openSite(options);
    await run(site);
  });
}

/** The same with PostgreSQL in place of MongoDB. */
export function postgresSiteTest(name: string, run: (site: Site) => Promise<void>): void {
  if (missingBesidePostgres !== null)
    return test.skip(`${name} (skipped: no ${missingBesidePostgres})`, () => {});
  test(name, async () => {
    await using site = openSite({ database: 'postgres' });
    await run(site);
  });
}

/** The same on PostgreSQL alone. */
export function postgresAloneTest(name: string, run: (site: Site) => Promise<void>): void {
  if (!POSTGRES_URL) return test.skip(`${name} (skipped: no PostgreSQL)`, () => {});
  test(name, async () => {
    await using site = openSite({ database: 'postgres', redis: '' });
    await run(site);
  });
}

export function openSite({
  database = 'mongodb',
  redis = REDIS_URL ?? '',
  ...options
}: WorkplaceOptions & { database?: 'mongodb' | 'postgres'; redis?: string } = {}): Site {
  const name = `troupe-test-${randomBytes(6).toString('hex')}`;
  const own =
    database === 'mongodb'
      ? { MONGODB_URL: withDatabase(MONGODB_URL ?? '', name) }
      : { POSTGRES_URL: withSchema(POSTGRES_URL ?? '', name) };
  const env: Record<string, string> = { ...own, REDIS_URL: redis };
  const place = workplace(options);
  const started: Running[] = [];

  async function start(args: string[], more: Record<string, string> = {}): Promise<Running> {
    const running = await place.start([...args, '--prefix', name], { ...env, ...more });
    started.push(running);
    return running;
  }

  return {
    place,
    env,
    async serve(args = []) {
      const running = await start(['serve', '--port', '0', ...args], { TROUPE_TOKEN: TOKEN });
      return { ...running, url: String(running.ready['url']) };
    },
    async worker(args = [], { status = false } = {}) {
      const port = status ? await freePort() : 0;
      const running = await start(['worker', '--status-port', `${port}`, ...args]);
      return { ...running, status: String(running.ready['status']) };
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of started) child.kill('SIGKILL');
      await Promise.all(started.map(({ exited }) => exited));
      place[Symbol.dispose]();
      await clean(env, name);
    },
  };
}

function withSchema(url: string, schema: string): string {
  const named = new URL(url);
  named.searchParams.set('schema', schema);
  // Only a hanging server exceeds these limits, however busy the machine is.
  named.searchParams.set('connect_timeout', '60');
  named.searchParams.set('statement_timeout', '60000');
  return named.href;
}

async function clean(
  { MONGODB_URL: mongodb, POSTGRES_URL: postgres, REDIS_URL: redisUrl = '' }: Record<string, string>,
  name: string,
): Promise<void> {
  if (mongodb !== undefined) {
    const client = new MongoClient(mongodb);
    await client.db(name).dropDatabase();
    await client.close();
  }
  if (postgres !== undefined) {
    const client = new pg.Client(postgres);
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS "${name}" CASCADE`);
    await client.end();
  }
  if (redisUrl !== '') await removeKeysAt(redisUrl, `*${name}*`);
}
