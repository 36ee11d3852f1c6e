import { createMongoClient, placeOf } from './connect-mongo.ts';
import { mongoError } from './mongo-error.ts';

export interface MongoFacts {
  /** Hosts and database, without credentials. */
  at: string;
  version: string;
  replicaSet: string | null;
}

/** Checks a server without writing to it. Throws the errors of `mongoError`. */
export async function checkMongo(url: string): Promise<MongoFacts> {
  const client = createMongoClient(url);
  const place = placeOf(client, url, undefined);
  try {
    const database = client.db(place.database);
    const [{ version }, hello] = await Promise.all([
      client.db('admin').command({ buildInfo: 1 }),
      database.command({ hello: 1 }),
    ]);
    const replicaSet: unknown = hello['setName'];
    return {
      at: `${place.hosts}/${place.database}`,
      version: String(version),
      replicaSet: typeof replicaSet === 'string' ? replicaSet : null,
    };
  } catch (error) {
    throw mongoError(error, place);
  } finally {
    await client.close();
  }
}
