import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { systemClock } from '../../../src/base/clock.ts';
import { createOutage } from '../../../src/queue/outage.ts';
import { PostgresListener } from '../src/queue/postgres-broadcast.ts';
import {
  createPostgresRouter,
  type PostgresRouter,
  type PostgresRouterOptions,
} from '../src/queue/postgres-router.ts';
import { channelOf, ensureTables, type QueueDatabase } from '../src/queue/queue-database.ts';
import { openQueueConnections } from '../src/store/connect-postgres.ts';
import { PATIENT, withParameters } from './postgres-stage.ts';

/** One process of the troupe: its connections and its listener. */
export interface QueueMember {
  process: string;
  database: QueueDatabase;
  listener: PostgresListener;
  /** Cuts its connections, as if the process had been killed. */
  kill: () => Promise<void>;
}

/** The queue of one troupe, in a schema of its own that is dropped at the end. */
export interface PostgresQueueStage extends AsyncDisposable {
  channels: { wakes: string; notices: string };
  warnings: string[];
  onWarning: (error: unknown, where: string) => void;
  sql<T extends object>(text: string, values?: unknown[]): Promise<T[]>;
  join(): Promise<QueueMember>;
  /** A router of a new member. */
  open(options?: Partial<PostgresRouterOptions>): Promise<PostgresRouter>;
}

export async function openQueueStage(url: string): Promise<PostgresQueueStage> {
  const schema = `troupe-test-${randomUUID().slice(0, 13)}`;
  const own = withParameters(url, { schema, ...PATIENT });
  const channels = { wakes: `${channelOf(schema)}_wakes`, notices: `${channelOf(schema)}_notices` };
  const warnings: string[] = [];
  const closers: (() => Promise<unknown>)[] = [];
  const onWarning = (error: unknown, where: string) =>
    void warnings.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);

  async function sql<T extends object>(text: string, values: unknown[] = []): Promise<T[]> {
    const client = new pg.Client(url);
    await client.connect();
    try {
      return (await client.query(text.replaceAll(/\bt\./g, `"${schema}".`), values)).rows as T[];
    } finally {
      await client.end();
    }
  }

  const returned: (() => void)[] = [];

  async function join(): Promise<QueueMember> {
    const { database, connectListener } = openQueueConnections(own);
    await ensureTables(database);
    const process = randomUUID().slice(0, 8);
    const outage = createOutage(onWarning, {
      where: 'queue',
      away: 'PostgreSQL is unavailable',
      back: 'back',
    });
    const listener = new PostgresListener({
      connect: connectListener,
      database,
      channels: Object.values(channels),
      process,
      clock: systemClock,
      outage,
      onReturned: () => returned.forEach((call) => call()),
    });
    const close = async () => {
      await listener.close();
      await database.close();
    };
    let closed: Promise<void> | undefined;
    const kill = () => (closed ??= close());
    closers.push(kill);
    await listener.listening();
    return { process, database, listener, kill };
  }

  await sql(`CREATE SCHEMA "${schema}"`);
  return {
    channels,
    warnings,
    onWarning,
    sql,
    join,
    async open(options = {}) {
      const router = createPostgresRouter({
        ...(await join()),
        channel: channels.wakes,
        clock: systemClock,
        onWarning,
        ...options,
      });
      closers.unshift(() => router.close());
      returned.push(() => router.lost());
      return router;
    },
    async [Symbol.asyncDispose]() {
      for (const close of closers) await close();
      await sql(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
    },
  };
}
