import type { Db, Document, MongoClient, ReadConcernLevel } from 'mongodb';
import { MongoServerError } from 'mongodb';
import type { Clock } from '../../clock.ts';
import { systemClock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import type { DocumentDriver } from '../documents/document-driver.ts';
import { createDocumentDriver } from '../documents/document-driver.ts';
import { createMongoClient, placeOf } from './connect-mongo.ts';
import { createMongoDocuments } from './mongo-documents.ts';
import type { MongoPlace } from './mongo-error.ts';
import { mongoError } from './mongo-error.ts';
import { migrateDatabase } from './mongo-schema.ts';

export interface MongoDriverOptions {
  url: string;
  /** Else the one in the url, else 'troupe'. */
  database?: string;
  clock?: Clock;
  /** How long the server keeps journals and effects, ms. */
  keepMs?: number;
  /** Told of what failed in the background; it is tried again, or costs nothing but space. */
  onWarning?: (error: unknown, what: string) => void;
}

/** Journals and effects outlive the longest turn by far. */
const KEEP_MS = 7 * 24 * 3_600_000;
/** An address at which nothing answers is told by then. */
const CONNECT_MS = 3_500;

/** The store of many processes: any server that speaks the MongoDB protocol and has a primary. */
export async function openMongoDriver({
  url,
  database,
  clock = systemClock,
  keepMs = KEEP_MS,
  onWarning = () => {},
}: MongoDriverOptions): Promise<DocumentDriver> {
  const client = createMongoClient(url);
  const place = placeOf(client, url, database);
  try {
    const hello = await connect(client, place, clock);
    checkServer(hello, place);
    const db = client.db(place.database);
    const readConcern = await findReadConcern(db, hello);
    await migrate(url, db, place, clock);
    const documents = createMongoDocuments(client, db, readConcern, { place, clock, keepMs, onWarning });
    return createDocumentDriver(documents, {
      random: Math.random,
      sleep: (ms) => clock.sleep(ms),
      monotonic: () => clock.monotonic(),
    });
  } catch (error) {
    // Not awaited: a server that never answers would hold the answer to our caller, too.
    client.close(true).catch(() => undefined);
    throw mongoError(error, place);
  }
}

async function connect(client: MongoClient, place: MongoPlace, clock: Clock): Promise<Document> {
  const answered = new AbortController();
  const hello = client.connect().then(() => client.db('admin').command({ hello: 1 }));
  const silent = clock.sleep(CONNECT_MS, answered.signal).then(() => {
    const message = `MongoDB at ${place.hosts}: no answer in ${CONNECT_MS / 1000} s. Check that it runs and the address is right`;
    throw new TroupeError('store_unavailable', message, { ...place });
  });
  // Whichever comes second is of no interest, even if it fails.
  silent.catch(() => undefined);
  try {
    return await Promise.race([hello, silent]);
  } finally {
    answered.abort();
  }
}

/** The driver has refused versions that are too old. What is left is a server that cannot be written to. */
function checkServer(hello: Document, place: MongoPlace): void {
  if (hello['isWritablePrimary'] === true || hello['ismaster'] === true || hello['msg'] === 'isdbgrid')
    return;
  const found =
    hello['secondary'] === true
      ? 'a secondary'
      : hello['arbiterOnly'] === true
        ? 'an arbiter'
        : 'not a primary';
  const message = `MongoDB at ${place.hosts}: this server is ${found}. Troupe needs the primary: name the replica set in the url (replicaSet=…) and leave out directConnection`;
  throw new TroupeError('server_unsuitable', message, { ...place, found });
}

/** A standalone server may know no other than `local`, and needs no other. */
async function findReadConcern(db: Db, hello: Document): Promise<ReadConcernLevel> {
  if ('setName' in hello || hello['msg'] === 'isdbgrid') return 'majority';
  try {
    await db
      .collection('meta', { readConcern: { level: 'majority' } })
      .findOne({}, { projection: { _id: 1 } });
    return 'majority';
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code === 13) throw error;
    return 'local';
  }
}

/** Building indexes may take long, so it has a connection on which silence is no failure. */
async function migrate(url: string, db: Db, place: MongoPlace, clock: Clock): Promise<void> {
  let patient: MongoClient | undefined;
  try {
    await migrateDatabase(db, place, {
      clock,
      async slow() {
        patient ??= createMongoClient(url, { socketTimeoutMS: 0, maxPoolSize: 2 });
        return patient.db(place.database);
      },
    });
  } finally {
    await patient?.close();
  }
}
