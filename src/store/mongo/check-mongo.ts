import { randomUUID } from 'node:crypto';
import { type Db, MongoServerError } from 'mongodb';
import { systemClock } from '../../base/clock.ts';
import { connect, createMongoClient, placeOf } from './connect-mongo.ts';
import { mongoError } from './mongo-error.ts';
import { COLLECTIONS, EXPIRY } from './mongo-schema.ts';

export interface MongoFacts {
  /** Hosts and database, without credentials. */
  at: string;
  version: string;
  replicaSet: string | null;
  expiry: Expiry;
}

/** Whether the server deletes what has expired. Some that speak the protocol refuse such indexes, or make plain ones of them. */
type Expiry = { kind: 'kept' } | { kind: 'ignored' } | { kind: 'refused'; why: string };

/** Checks a server. Throws the errors of `mongoError`. */
export async function checkMongo(url: string): Promise<MongoFacts> {
  const client = createMongoClient(url);
  const place = placeOf(client, url, undefined);
  try {
    const hello = await connect(client, place, systemClock);
    const { version } = await client.db('admin').command({ buildInfo: 1 });
    const expiry = await findExpiry(client.db(place.database));
    const replicaSet: unknown = hello['setName'];
    return {
      at: `${place.hosts}/${place.database}`,
      version: String(version),
      replicaSet: typeof replicaSet === 'string' ? replicaSet : null,
      expiry,
    };
  } catch (error) {
    throw mongoError(error, place);
  } finally {
    await client.close();
  }
}

/** Of the database of a company. Where there is none yet, an empty collection is made and dropped. */
async function findExpiry(db: Db): Promise<Expiry> {
  const own = await expiryIn(db, COLLECTIONS.registers);
  if (own) return own;
  const name = `troupe_doctor_${randomUUID()}`;
  try {
    await db.collection(name).createIndexes([EXPIRY]);
    return (await expiryIn(db, name)) ?? { kind: 'ignored' };
  } catch (error) {
    if (!(error instanceof MongoServerError) || isOfRights(error)) throw error;
    return { kind: 'refused', why: error.message };
  } finally {
    // What matters is known by then.
    await db.dropCollection(name).catch(() => undefined);
  }
}

/** Null: there is no such collection or index. */
async function expiryIn(db: Db, name: string): Promise<Expiry | null> {
  try {
    const index = (await db.collection(name).indexes()).find((each) => each.name === EXPIRY.name);
    if (!index) return null;
    return { kind: index.expireAfterSeconds === undefined ? 'ignored' : 'kept' };
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_UNKNOWN) return null;
    throw error;
  }
}

const NAMESPACE_UNKNOWN = 26;

/** Without the right to write, or the right password. */
function isOfRights({ code }: MongoServerError): boolean {
  return code === 13 || code === 18 || code === 8000;
}
