import { TroupeError, toTroupeError } from '../../base/errors.ts';
import { loadWith, type Need, REDIS_ALONE } from '../../base/optional-packages.ts';
import { createInProcessAdmission } from '../../queue/in-process-admission.ts';
import { createBroadcastHub } from '../../queue/in-process-broadcast.ts';
import { createInProcessRouter } from '../../queue/in-process.ts';
import { slicesOf } from '../../base/slices.ts';
import { createStore } from '../../store/create-store.ts';
import { type DataLock, lockDataDir } from '../../store/sqlite/data-lock.ts';
import { type Durability, openSqliteDriver } from '../../store/sqlite/sqlite-driver.ts';
import {
  databaseOf,
  type DatabaseUrl,
  loadDatabase,
  needOf,
  loadPostgres,
  type ServiceOptions,
  type Services,
  type DatabaseOptions,
} from './services.ts';
import { chargeReads, countStoreErrors, reportDamage, timeStore } from './observed-store.ts';
import type { QueueServer } from '../../queue/queue-server.ts';
import { createStorePace } from '../../queue/fair-share.ts';
import type { StoreDriver } from '../../store/driver.ts';

interface ServiceUrls {
  data?: string | undefined;
  /** A database that the caller has opened. It is closed with the services. */
  store?: StoreDriver | undefined;
  mongodb?: string | undefined;
  postgres?: string | undefined;
  redis?: string | undefined;
  prefix?: string | undefined;
  /** Of the data directory. Default `disk`. */
  durability?: Durability | undefined;
  /** The caller's lock of `data`, which the services leave locked. Default: their own, released when they close. */
  lock?: DataLock | undefined;
}

/**
 * Opens the distributed services if a database is given, with `redis` beside it or a PostgreSQL that is both; else the
 * embedded ones. Throws `config_invalid`.
 */
export async function openServices(urls: ServiceUrls, options: ServiceOptions): Promise<Services> {
  const { data, store, redis, prefix = 'troupe', lock, durability } = urls;
  const database = databaseOf(urls);
  if (database === undefined && store === undefined && redis === undefined) {
    const own = lock || data === undefined || data === ':memory:' ? null : lockDataDir(data);
    return openEmbedded({ lock: lock ?? own, durability }, options, () => own?.release());
  }
  if (data !== undefined) {
    const message = 'data is the directory of the embedded mode; omit it with a database';
    throw new TroupeError('config_invalid', message);
  }
  if (durability !== undefined) {
    const message =
      'durability is a setting of the data directory of the embedded mode; set that of the database itself';
    throw new TroupeError('config_invalid', message);
  }
  if (store !== undefined) return openGiven(store, { database, redis, prefix }, options);
  if (database === undefined) throw without('redis', 'mongodb, postgres or store');
  // The drivers are loaded only for the distributed mode.
  const need = needOf(database, redis);
  const [openDriver, queue] = await Promise.all([
    loadDatabase(database, need),
    loadQueue(database, redis, { need, prefix }),
  ]);
  return openDistributed({ openDriver, queue }, options);
}

/** Over a database that the caller has opened: one process of many with `redis`, else the only one that is told of its messages. */
async function openGiven(
  store: StoreDriver,
  {
    database,
    redis,
    prefix,
  }: { database: DatabaseUrl | undefined; redis: string | undefined; prefix: string },
  options: ServiceOptions,
): Promise<Services> {
  if (database !== undefined) {
    const message = 'store is a database of its own; omit mongodb and postgres';
    throw new TroupeError('config_invalid', message);
  }
  if (redis === undefined) return inProcess(store, options, { soleOwner: false });
  const queue = await loadRedis(redis, { need: REDIS_ALONE, prefix });
  return openDistributed({ openDriver: async () => store, queue }, options);
}

async function loadQueue(
  database: DatabaseUrl,
  redis: string | undefined,
  redisOptions: { need: Need; prefix: string },
): Promise<QueueServer> {
  if (redis !== undefined) return await loadRedis(redis, redisOptions);
  if (database.postgres === undefined) throw without('mongodb', 'redis');
  const { postgresQueue } = await loadPostgres(redisOptions.need);
  return postgresQueue(database.postgres);
}

async function loadRedis(
  redis: string,
  { need, prefix }: { need: Need; prefix: string },
): Promise<QueueServer> {
  const { redisQueue } = await loadWith(need, () => import('./redis-queue.ts'));
  return redisQueue(redis, prefix);
}

function without(given: string, missing: string): TroupeError {
  const message = `${given} is given without ${missing}: the distributed mode needs a database and redis, or postgres alone; a single process needs none`;
  return new TroupeError('config_invalid', message);
}

/** One process with a data directory, or in memory. Throws `data_busy`, `data_unwritable`, `store_corrupt`, `store_newer`. */
async function openEmbedded(
  { lock, durability }: { lock: DataLock | null; durability: Durability | undefined },
  options: ServiceOptions,
  release: () => void,
): Promise<Services> {
  const { onWarning } = options;
  if (lock?.exposed) onWarning(lock.exposed, 'data');
  try {
    const path = lock?.paths.database ?? ':memory:';
    const driver = await openSqliteDriver({ path, durability, isOwned: true, onWarning });
    const services = inProcess(driver, options, { soleOwner: true });
    return {
      ...services,
      async close() {
        await services.close();
        release();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}

/** A store with the queue of this process. */
function inProcess(
  driver: StoreDriver,
  { clock, caps, mostWaiting, metrics, onWarning }: ServiceOptions,
  limits: Services['limits'],
): Services {
  const store = createStore(
    chargeReads(countStoreErrors(driver, metrics)),
    slicesOf(clock),
    reportDamage(metrics, onWarning),
  );
  return {
    store,
    router: createInProcessRouter({ clock, metrics, mostWaiting }),
    broadcast: createBroadcastHub().join(onWarning),
    admission: createInProcessAdmission({ caps, clock }),
    limits,
    close: () => store.close(),
  };
}

interface DistributedServers {
  openDriver: (options: DatabaseOptions) => Promise<StoreDriver>;
  queue: QueueServer;
}

/** More turns than a process runs at once, so that the store's pace starts unlimited. */
const MOST_AT_ONCE = 1_024;
/** How far sweeps look back, ms: the log may be very large. See P2 of the sweeper. */
const SWEEP_WINDOW_MS = 600_000;

/**
 * Opens one process of many. The database holds the data; the queue holds only what speeds it up. Both servers are checked
 * before anything else is opened. Throws `config_invalid`, `store_unavailable`, `queue_unavailable`, `server_unsuitable`,
 * `store_newer`.
 */
async function openDistributed(
  { openDriver, queue: server }: DistributedServers,
  options: ServiceOptions,
): Promise<Services> {
  const { clock, metrics, onWarning } = options;
  const [opened, checked] = await Promise.allSettled([
    openDriver({ clock, onWarning }),
    server.check({ onWarning }),
  ]);
  if (opened.status === 'rejected' || checked.status === 'rejected') {
    if (opened.status === 'fulfilled') await opened.value.close();
    throw both(opened, checked);
  }
  const pace = createStorePace(MOST_AT_ONCE, clock);
  const driver = timeStore(countStoreErrors(opened.value, metrics), clock, (ms) => pace.took(ms));
  const queue = await openBeside(driver, () => server.open({ ...options, pace }));
  return {
    store: createStore(chargeReads(driver), slicesOf(clock), reportDamage(metrics, onWarning)),
    router: queue.router,
    broadcast: queue.broadcast,
    admission: queue.admission,
    limits: { soleOwner: false, sweepWindowMs: SWEEP_WINDOW_MS },
    async close() {
      await queue.close();
      await driver.close();
    },
  };
}

/** Closes the store if the queue cannot be opened. */
async function openBeside<T>(driver: StoreDriver, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    await driver.close();
    throw error;
  }
}

/** Reports both failures at once, so that the operator can fix both. */
function both(...results: readonly PromiseSettledResult<unknown>[]): unknown {
  const errors = results.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  const [first, second] = errors.map(toTroupeError);
  if (!first || !second) return errors[0];
  return new TroupeError(first.code, `${first.message}; and ${second.message}`, first.data, { cause: first });
}
