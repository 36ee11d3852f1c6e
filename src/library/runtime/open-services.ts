import { TroupeError, toTroupeError } from '../../base/errors.ts';
import { loadWith, type Need, REDIS_ALONE } from '../../base/optional-packages.ts';
import { createInProcessAdmission } from '../../queue/in-process-admission.ts';
import { createBroadcastHub } from '../../queue/in-process-broadcast.ts';
import { createInProcessRouter } from '../../queue/in-process.ts';
import { slicesOf } from '../../base/slices.ts';
import { createStore, type OnDamage } from '../../store/create-store.ts';
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
import type { QueueServer } from '../../queue/queue-server.ts';
import { createStorePace } from '../../queue/fair-share.ts';
import type { StoreDriver } from '../../store/driver.ts';
import type { Metrics } from '../../events/metrics.ts';
import { wrapMethods } from '../../store/wrap-methods.ts';
import { chargeWork, isCharged } from '../../base/work.ts';
import type { Clock } from '../../base/clock.ts';

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
  /** The caller's lock of `data`, which stays locked when the services close. Default: a lock of their own, released then. */
  lock?: DataLock | undefined;
}

/**
 * Opens the distributed services if a database is given: with `redis`, or with a PostgreSQL that also has the queue.
 * Otherwise the embedded ones. Throws `config_invalid`.
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

/** Uses a database that the caller has opened. Without `redis`, only this process is notified of its messages. */
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

/** More turns than a process runs at once, so that the pace of the store starts without a limit. */
const MOST_AT_ONCE = 1_024;
/** How far sweeps look back, ms, because the log may be very large. See P2 of the sweeper. */
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

/** Counts the errors of the store, and the appends that were repeated because another writer took the seq. */
function countStoreErrors(
  driver: StoreDriver & { stats?: { clashes: number } },
  metrics: Metrics,
): StoreDriver {
  let clashes = 0;
  const counting: Parameters<typeof wrapMethods>[1] =
    (method) =>
    (...args) =>
      method(...args).catch((error: unknown) => {
        metrics.count('store_errors', { code: toTroupeError(error).code });
        throw error;
      });
  const counted = wrapMethods<StoreDriver>(driver, counting);
  const own = { inbox: wrapMethods(driver.inbox, counting), check: driver.check, close: driver.close };
  const { stats } = driver;
  if (!stats) return { ...counted, ...own };
  return {
    ...counted,
    ...own,
    async append(rows) {
      const outcomes = await counted.append(rows);
      const now = stats.clashes;
      if (now > clashes) metrics.count('append_retries', {}, now - clashes);
      clashes = now;
      return outcomes;
    },
  };
}

/** Most damaged events, and most of their conversations, that a process keeps track of. */
const MOST_DAMAGED = 10_000;

/** Counts each damaged event once, and warns once for each conversation. */
function reportDamage(metrics: Metrics, onWarning: (error: unknown, where: string) => void): OnDamage {
  const known = new Set<string>();
  function isNew(key: string): boolean {
    if (known.has(key)) return false;
    if (known.size >= MOST_DAMAGED) known.clear();
    known.add(key);
    return true;
  }

  return ({ tenant, conversation }, { kind, seq, id }) => {
    if (!isNew(`${tenant}/${conversation}/${seq}`)) return;
    metrics.count('damaged_events', { damage: kind });
    if (!isNew(`${tenant}/${conversation}`)) return;
    // The reason may quote the stored text, which no log line may contain.
    const [code, what] =
      kind === 'altered'
        ? (['event_altered', 'was changed after it was stored: its content does not match its hash'] as const)
        : (['store_corrupt', 'cannot be read'] as const);
    const message = `event ${seq} of conversation ${conversation} ${what}. The conversation goes on; to check all of it: troupe doctor --verify ${conversation}`;
    onWarning(new TroupeError(code, message, { tenant, conversation, seq, id }), 'store');
  };
}

/** Charges reads to the account of the request that makes them; see `work.ts`. */
function chargeReads(driver: StoreDriver): StoreDriver {
  return {
    ...driver,
    async readEvents(query) {
      const rows = await driver.readEvents(query);
      await charged(rows);
      return rows;
    },
    async readEvent(query) {
      const row = await driver.readEvent(query);
      await charged(row ? [row] : []);
      return row;
    },
    async conversations(query) {
      const page = await driver.conversations(query);
      await chargeWork(page.looked, 0);
      return page;
    },
    async addressed(query) {
      const seqs = await driver.addressed(query);
      await chargeWork(seqs.length, 0);
      return seqs;
    },
    async listActors(query) {
      const rows = await driver.listActors(query);
      await charged(rows);
      return rows;
    },
    async readEntry(key) {
      const data = await driver.readEntry(key);
      await charged(data === null ? [] : [{ data }]);
      return data;
    },
  };
}

function charged(rows: readonly { data: string }[]): Promise<void> | undefined {
  if (rows.length === 0 || !isCharged()) return undefined;
  return chargeWork(
    rows.length,
    rows.reduce((sum, { data }) => sum + data.length, 0),
  );
}

/** Operations that every turn needs. */
const TIMED: readonly string[] = ['append', 'readEvent', 'acquire', 'compareAndSet', 'readEntry', 'swap'];

function timeStore(
  driver: StoreDriver,
  clock: Pick<Clock, 'monotonic'>,
  took: (ms: number) => void,
): StoreDriver {
  return wrapMethods(driver, (method, name) => {
    if (!TIMED.includes(name)) return method;
    return async (...args) => {
      const began = clock.monotonic();
      try {
        return await method(...args);
      } finally {
        took(clock.monotonic() - began);
      }
    };
  });
}
