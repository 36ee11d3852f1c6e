import {
  type Db,
  type Document,
  MongoClient,
  type MongoClientOptions,
  MongoServerError,
  type ReadConcernLevel,
} from 'mongodb';
import { createBackground, mongoError, type MongoPlace, urlError } from './mongo-error.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { createDocumentDriver, type DocumentDriver } from '../documents/document-driver.ts';
import { wrapMethods } from '../wrap-methods.ts';
import { COLLECTIONS, prepareDatabase, EXPIRY } from './mongo-schema.ts';
import type { Documents } from '../documents/documents.ts';
import { type ActorDoc, createActorDocuments } from './mongo-actors.ts';
import { type BlobDoc, createBlobs } from './mongo-blobs.ts';
import { type ConversationDoc, createConversations } from './mongo-conversations.ts';
import { createPassageDocuments, type PassageDoc, createStandingDocuments } from './mongo-inbox.ts';
import { createEventDocuments, type EventDoc } from './mongo-events.ts';
import { createEntryDocuments, type EntryDoc } from './mongo-entries.ts';
import { randomUUID } from 'node:crypto';

/** Options that correctness depends on. A URL cannot override them. */
const FIXED: MongoClientOptions = {
  writeConcern: { w: 'majority', journal: true },
  readPreference: 'primary',
  ignoreUndefined: true,
  // With validation, one damaged string would make the other documents of the answer unreadable.
  enableUtf8Validation: false,
};

/**
 * Options that a URL may override. Together they bound every wait: for a server, an answer or a connection. Callers that
 * wait for a connection fail at once when the server stops answering. The driver does not retry writes, because not every
 * server supports it and Troupe can look up or repeat each of its writes.
 */
const DEFAULTS: MongoClientOptions = {
  appName: 'troupe',
  serverSelectionTimeoutMS: 3_000,
  connectTimeoutMS: 3_000,
  socketTimeoutMS: 5_000,
  waitQueueTimeoutMS: 10_000,
  maxPoolSize: 64,
  maxConnecting: 8,
  maxIdleTimeMS: 120_000,
  retryWrites: false,
};

const DEFAULT_DATABASE = 'troupe';

export function createMongoClient(url: string, options: MongoClientOptions = {}): MongoClient {
  const query = url.toLowerCase().split('?').slice(1).join('?').split('&');
  const isInUrl = (name: string) => query.some((each) => each.startsWith(`${name.toLowerCase()}=`));
  const defaults = Object.entries(DEFAULTS).filter(([name]) => !isInUrl(name));
  try {
    return new MongoClient(url, { ...Object.fromEntries(defaults), ...FIXED, ...options });
  } catch (error) {
    throw urlError(error);
  }
}

/** The hosts and the database name: the option, else the name in the URL, else 'troupe'. */
function placeOf(client: MongoClient, url: string, database: string | undefined): MongoPlace {
  const { hosts, srvHost } = client.options;
  const inUrl = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^?]+)/.exec(url)?.[1];
  return {
    hosts: srvHost ?? hosts.map(String).join(', '),
    database: database ?? (inUrl ? decodeURIComponent(inUrl) : DEFAULT_DATABASE),
  };
}

export interface MongoDriverOptions {
  url: string;
  /** Database name. Default: the name in the URL, else 'troupe'. */
  database?: string;
  clock?: Clock;
  /** How long the server keeps journals and effects, ms. Default: seven days. */
  keepMs?: number;
  /** Called when background work fails. Such work is retried, or its failure costs only space. */
  onWarning?: (error: unknown, what: string) => void;
}

/** Default of `keepMs`, far longer than any turn. */
const KEEP_MS = 7 * 24 * 3_600_000;
const CONNECT_MS = 3_500;

/** The store for many processes: any server that speaks the MongoDB protocol and has a primary. */
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
    await prepare(url, db, place, clock);
    const documents = createMongoDocuments(client, db, readConcern, { place, clock, keepMs, onWarning });
    return createDocumentDriver(documents, {
      random: Math.random,
      sleep: (ms) => clock.sleep(ms),
      monotonic: () => clock.monotonic(),
    });
  } catch (error) {
    // Not awaited, because a server that never answers would block the caller.
    client.close(true).catch(() => undefined);
    throw mongoError(error, place);
  }
}

/** The answer to the first command. No other command runs before it, or it would fail with a closed topology. */
async function connect(client: MongoClient, place: MongoPlace, clock: Clock): Promise<Document> {
  const answered = new AbortController();
  const hello = client.connect().then(() => client.db('admin').command({ hello: 1 }));
  const silent = clock.sleep(CONNECT_MS, answered.signal).then(() => {
    const message = `MongoDB at ${place.hosts}: no answer in ${CONNECT_MS / 1000} s. Check that it runs and the address is right`;
    throw new TroupeError('store_unavailable', message, { ...place });
  });
  // The timeout rejects even if the server answered first.
  silent.catch(() => undefined);
  try {
    return await Promise.race([hello, silent]);
  } finally {
    answered.abort();
  }
}

/** Refuses a server that takes no writes. The MongoDB driver itself refuses versions that are too old. */
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

/** `majority` if the server supports it. A standalone server may support only `local`, which suffices there. */
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

/** Creates the schema, on a connection without a socket timeout, because building indexes may take long. */
async function prepare(url: string, db: Db, place: MongoPlace, clock: Clock): Promise<void> {
  let patient: MongoClient | undefined;
  try {
    await prepareDatabase(db, place, {
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

interface MongoDocumentsOptions {
  place: MongoPlace;
  clock: Clock;
  keepMs: number;
  onWarning: (error: unknown, what: string) => void;
}

const REMAINS =
  'MongoDB keeps older versions in its journal and oplog until they roll over, and in unused parts of its files until it uses them again';

/** The documents of one database. Owns the client: `close` waits for background work, then closes the client. */
export function createMongoDocuments(
  client: MongoClient,
  db: Db,
  readConcern: ReadConcernLevel,
  { place, clock, keepMs, onWarning }: MongoDocumentsOptions,
): Documents {
  const background = createBackground((error, what) => onWarning(mongoError(error, place), what));
  const options = { readConcern: { level: readConcern } };
  const events = db.collection<EventDoc>(COLLECTIONS.events, options);
  const actors = db.collection<ActorDoc>(COLLECTIONS.actors, options);
  const entries = db.collection<EntryDoc>(COLLECTIONS.registers, options);
  const chunks = db.collection<BlobDoc>(COLLECTIONS.blobs, options);
  const listed = db.collection<ConversationDoc>(COLLECTIONS.conversations, options);

  const blobs = createBlobs(
    chunks,
    async ({ in: where, id }, ref) => {
      const owners = db.collection<{ _id: typeof id; blob?: { ref: string } }>(COLLECTIONS[where], options);
      return (await owners.findOne({ _id: id, 'blob.ref': ref }, { projection: { _id: 1 } })) !== null;
    },
    { clock, background },
  );
  const passages = createPassageDocuments(db.collection<PassageDoc>(COLLECTIONS.passages, options), listed);
  const conversations = createConversations(listed, {
    clock,
    background,
    removed: (key) => passages.remove(key),
  });
  const guard = <T extends object>(target: T) =>
    wrapMethods(
      target,
      (method) =>
        (...args) =>
          method(...args).catch((error: unknown) => {
            throw mongoError(error, place);
          }),
    );

  return {
    events: guard(createEventDocuments(events, blobs, conversations)),
    actors: guard(createActorDocuments(actors, blobs)),
    entries: guard(createEntryDocuments(entries, blobs, { clock, keepMs })),
    standings: guard(createStandingDocuments(listed, conversations)),
    passages: guard(passages.documents),

    scrub: () => Promise.resolve([REMAINS]),
    onLost(listener) {
      client.on('serverHeartbeatFailed', listener);
      client.on('connectionPoolCleared', listener);
    },

    async close() {
      background.run('recording the newest events of conversations', () => conversations.close());
      await background.settled();
      await client.close();
    },
  };
}

interface MongoFacts {
  /** Hosts and database, without credentials. */
  at: string;
  version: string;
  replicaSet: string | null;
  expiry: Expiry;
}

/** Whether the server deletes expired documents. Some servers of the protocol refuse expiring indexes, or ignore their expiry. */
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

/** Reads it from the collections of the database. If there are none yet, creates and drops a trial collection. */
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
    // The answer is known by now, so a failure to drop does not matter.
    await db.dropCollection(name).catch(() => undefined);
  }
}

/** Null if there is no such collection or index. */
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

/** Whether the user lacks the right to write, or the password is wrong. */
function isOfRights({ code }: MongoServerError): boolean {
  return code === 13 || code === 18 || code === 8000;
}
