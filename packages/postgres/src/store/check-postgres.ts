import { checkServer, refuseSharedConnections, targetOf, withConnection } from './connect-postgres.ts';

export interface PostgresFacts {
  /** Host and database, without credentials. */
  at: string;
  version: string;
  /** Standbys that are connected. A service may copy its data by other means. */
  standbys: number;
  /** Whether a write waits for the disk. */
  isDurable: boolean;
}

/** Checks a server without writing to it. Throws the errors of `postgresError`. */
export async function checkPostgres(url: string): Promise<PostgresFacts> {
  const { config, place } = targetOf(url);
  const { version, standbys, isDurable } = await withConnection(config, place, async (queries) => {
    const facts = await checkServer(queries, place);
    await refuseSharedConnections(queries, config, place);
    return facts;
  });
  return { at: `${place.host}/${place.database}`, version, standbys, isDurable };
}
