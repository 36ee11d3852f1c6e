import { randomUUID } from 'node:crypto';
import { createOutage, type Queue, queueObserver, type QueueOptions, type QueueServer } from './troupe.ts';
import { createPostgresAdmission } from './queue/postgres-admission.ts';
import { createPostgresBroadcast, PostgresListener } from './queue/postgres-broadcast.ts';
import { createPostgresRouter } from './queue/postgres-router.ts';
import { channelOf, ensureTables } from './queue/queue-database.ts';
import { openQueueConnections } from './store/connect-postgres.ts';

/** `@troupe/postgres`: a store and a queue for many processes in PostgreSQL. Troupe loads it for the option `postgres`. */
export { checkPostgres, type PostgresFacts } from './store/connect-postgres.ts';
export { openPostgresDriver, type PostgresDriverOptions } from './store/connect-postgres.ts';

/** The queue in the PostgreSQL that holds the store. The store must be open. Throws `store_unavailable`, `data_unwritable`. */
export function postgresQueue(postgres: string): QueueServer {
  return { check: async () => undefined, open: (options) => openPostgresQueue(postgres, options) };
}

async function openPostgresQueue(url: string, options: QueueOptions): Promise<Queue> {
  const { clock, caps, leaseMs, mostWaiting, metrics, onWarning, pace } = options;
  const { database, connectListener, errorOf } = openQueueConnections(url);
  try {
    await ensureTables(database);
  } catch (error) {
    await database.close();
    throw errorOf(error);
  }
  const channel = channelOf(database.schema);
  const [wakes, notices] = [`${channel}_wakes`, `${channel}_notices`];
  const process = randomUUID().slice(0, 12);
  const outage = createOutage(onWarning, {
    where: 'broadcast',
    away: 'no notifications of PostgreSQL arrive: live text and new events are late, and wakes are looked for more often; nothing is lost',
    back: 'notifications of PostgreSQL arrive again',
  });
  // Not awaited, because the router finds wakes that were announced earlier when it reads the table.
  const listener = new PostgresListener({
    connect: connectListener,
    database,
    channels: [wakes, notices],
    process,
    clock,
    outage,
    // The connection may have been lost in a crash of the server, which empties the queue.
    onReturned: () => router.lost(),
  });
  const observer = queueObserver(metrics);
  const shared = { database, listener, process, onWarning };
  const router = createPostgresRouter({
    ...shared,
    channel: wakes,
    clock,
    observer,
    mostWaiting,
    pace,
    // Shorter than the lease, so that the wake of a dead holder is free before its lease ends.
    lockMs: leaseMs / 2,
  });
  const broadcast = createPostgresBroadcast({ ...shared, channel: notices, outage });
  const admission = createPostgresAdmission({
    database,
    caps,
    onWarning,
    onFailed: (error) => router.suspect(error),
  });
  return {
    router,
    broadcast,
    admission,
    async close() {
      await Promise.all([broadcast.close(), admission.close()]);
      await listener.close();
      await database.close();
    },
  };
}
