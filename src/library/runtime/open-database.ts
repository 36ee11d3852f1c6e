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
import { loadPostgres } from './postgres.ts';

/** The database of the distributed mode. */
export type DatabaseUrl = { mongodb: string; postgres?: never } | { postgres: string; mongodb?: never };

export interface DatabaseOptions {
  clock?: Clock;
  onWarning?: (error: unknown, what: string) => void;
}

/** The one of the two that is given; undefined without any. Throws `config_invalid` for both. */
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
