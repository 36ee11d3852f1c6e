import { randomUUID } from 'node:crypto';
import { createOutage, type Queue, queueObserver, type QueueOptions, type QueueServer } from './troupe.ts';
import { createPostgresAdmission } from './queue/postgres-admission.ts';
import { createPostgresBroadcast, PostgresListener } from './queue/postgres-broadcast.ts';
import { createPostgresRouter } from './queue/postgres-router.ts';
import { channelOf, ensureTables } from './queue/queue-database.ts';
import { openQueueConnections } from './store/connect-postgres.ts';

/** `@troupe/postgres`: the store and the queue of many processes in PostgreSQL. Troupe loads it where `postgres` is given. */
export { checkPostgres, type PostgresFacts } from './store/connect-postgres.ts';
export { openPostgresDriver, type PostgresDriverOptions } from './store/connect-postgres.ts';

/** The queue in the PostgreSQL that holds the store, which is checked and open. Throws `store_unavailable`, `data_unwritable`. */
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
  // Not awaited: what was told before is found by looking.
  const listener = new PostgresListener({
    connect: connectListener,
    database,
    channels: [wakes, notices],
    process,
    clock,
    outage,
    // After a crash of the server the queue is empty.
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
    // A dead holder is noticed before its lease ends.
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
