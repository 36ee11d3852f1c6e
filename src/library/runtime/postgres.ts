import type { Clock } from '../../base/clock.ts';
import { loadWith, type Need } from '../../base/optional-packages.ts';
import type { QueueServer } from '../../queue/queue-server.ts';
import type { StoreDriver } from '../../store/driver.ts';

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
export interface PostgresReport {
  /** Host and database, without credentials. */
  at: string;
  /** Of the server. */
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
