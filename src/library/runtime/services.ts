import type { EngineLimits } from '../../actors/actor/engine-deps.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { Admission } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { QueueOptions, QueueServer } from '../../queue/queue-server.ts';
import type { Router } from '../../queue/router.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  DISTRIBUTED,
  DISTRIBUTED_ON_POSTGRES,
  loadWith,
  type Need,
  POSTGRES_ALONE,
} from '../../base/optional-packages.ts';
import type { StoreDriver } from '../../store/driver.ts';

/** The store and the queue of one process. Only they differ between the embedded and the distributed mode. */
export interface Services {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  admission: Admission;
  /** Limits whose defaults this mode overrides. */
  limits: Partial<EngineLimits>;
  /** Called after the engine has stopped. */
  close(): Promise<void>;
}

/** Options of both modes. */
export type ServiceOptions = Omit<QueueOptions, 'pace'>;

export function keyValueOf(
  store: Pick<Store, 'get' | 'compareAndSet' | 'claim'>,
  tenant: TenantId,
): KeyValue {
  const scope = tenant === DEFAULT_TENANT ? '' : `${tenant}/`;
  return {
    get: (key) => store.get(tenant, key),
    compareAndSet: (key, from, to) => store.compareAndSet(tenant, key, from, to),
    claim: (task, lease) => store.claim(`${scope}${task}`, lease),
  };
}

/** The database of the distributed mode. */
export type DatabaseUrl = { mongodb: string; postgres?: never } | { postgres: string; mongodb?: never };

export interface DatabaseOptions {
  clock?: Clock;
  onWarning?: (error: unknown, what: string) => void;
}

/** The database that is given; undefined if none is. Throws `config_invalid` if both are. */
export function databaseOf(urls: {
  mongodb?: string | undefined;
  postgres?: string | undefined;
}): DatabaseUrl | undefined {
  const { mongodb, postgres } = urls;
  if (mongodb === undefined) return postgres === undefined ? undefined : { postgres };
  if (postgres === undefined) return { mongodb };
  const message = 'mongodb and postgres are both given: the log has one database; omit one of them';
  throw new TroupeError('config_invalid', message);
}

/** The packages that a process with this database needs, with Redis or without. */
export function needOf(database: DatabaseUrl, redis: string | undefined): Need {
  if (database.postgres === undefined) return DISTRIBUTED;
  return redis === undefined ? POSTGRES_ALONE : DISTRIBUTED_ON_POSTGRES;
}

/** Loads the adapter of the database. Throws `package_missing`; what it returns throws the errors of the adapter. */
export async function loadDatabase(
  database: DatabaseUrl,
  need: Need,
): Promise<(options?: DatabaseOptions) => Promise<StoreDriver>> {
  const { mongodb, postgres } = database;
  if (postgres !== undefined) {
    const { openPostgresDriver } = await loadPostgres(need);
    return (options = {}) => openPostgresDriver({ url: postgres, ...options });
  }
  const load = () => import('../../store/mongo/connect-mongo.ts');
  const { openMongoDriver } = await loadWith(need, load);
  return (options = {}) => openMongoDriver({ url: mongodb, ...options });
}

/** The interface of `@troupe/postgres` that the core uses. The package is separate and optional. */
export interface PostgresPackage {
  /** Throws `config_invalid`, `server_unsuitable`, `store_unavailable`, `store_newer`. */
  openPostgresDriver: (options: { url: string; clock?: Clock }) => Promise<StoreDriver>;
  /** The queue in the database that holds the store, which is open. */
  postgresQueue: (url: string) => QueueServer;
  /** Checks a server without writing to it. Throws the errors of `openPostgresDriver`. */
  checkPostgres: (url: string) => Promise<PostgresReport>;
}

/** What a check of a server found. */
interface PostgresReport {
  /** Host and database, without credentials. */
  at: string;
  /** Version of the server. */
  version: string;
  /** Standbys that are connected. */
  standbys: number;
  /** Whether a write waits for the disk. */
  isDurable: boolean;
}

/** Throws `package_missing` if the package is not installed. */
export async function loadPostgres(need: Need): Promise<PostgresPackage> {
  // `as string`: the core compiles without the package.
  return await loadWith(need, async () => (await import('@troupe/postgres' as string)) as PostgresPackage);
}
