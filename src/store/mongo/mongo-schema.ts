import { randomUUID } from 'node:crypto';
import type { Collection, Db } from 'mongodb';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { type MongoPlace, isDuplicateKey } from './mongo-error.ts';

/**
 * The collections and their indexes.
 *  M1  Creating them is safe to repeat. The version is written only by the holder of the lease.
 *  M2  Processes without the lease wait until the version is reached. When the lease of a dead holder ends, another process
 *      takes it.
 *  M3  A database of another version or another program is refused and not changed.
 */
/** Names of the collections in the database. `registers` has the entries. */
export const COLLECTIONS = {
  events: 'events',
  actors: 'actors',
  registers: 'registers',
  blobs: 'blobs',
  conversations: 'conversations',
  passages: 'passages',
} as const;

/** The index by which the server deletes a document at the time in `expires`. */
export const EXPIRY = { name: 'expires', key: { expires: 1 }, expireAfterSeconds: 0 } as const;

interface SchemaDoc {
  _id: string;
  /** Marks the database as one of Troupe. */
  application: string;
  version: number;
  owner: string;
  until: number;
}

async function createIndexes(db: Db): Promise<void> {
  await db.collection(COLLECTIONS.events).createIndexes([
    { name: 'log_seq', key: { log: 1, seq: 1 }, unique: true },
    { name: 'addressed', key: { addressedAt: 1 }, sparse: true },
  ]);
  await db.collection(COLLECTIONS.actors).createIndexes([
    { name: 'turn', key: { turn: 1 }, sparse: true },
    { name: 'outbox', key: { outbox: 1 }, sparse: true },
    { name: 'wakeAt', key: { wakeAt: 1 }, sparse: true },
  ]);
  await db
    .collection(COLLECTIONS.registers)
    .createIndexes([{ name: 'age', key: { namespace: 1, at: 1 } }, EXPIRY]);
  await db
    .collection(COLLECTIONS.blobs)
    .createIndexes([{ name: 'pending', key: { pending: 1 }, sparse: true }, EXPIRY]);
  await db.collection(COLLECTIONS.conversations).createIndexes([
    { name: 'newest', key: { tenant: 1, at: -1 } },
    // Contains the id, so that pages can begin at any position and ids are filtered by the index alone.
    { name: 'listed', key: { tenant: 1, at: -1, _id: -1 } },
    { name: 'rank', key: { tenant: 1, 'standing.rank': -1, 'standing.since': -1, _id: -1 } },
    { name: 'since', key: { tenant: 1, 'standing.since': -1, _id: -1 } },
    { name: 'cost', key: { tenant: 1, 'standing.cost': -1, _id: -1 } },
    { name: 'unread', key: { tenant: 1, unread: 1, at: -1, _id: -1 } },
    { name: 'terms', key: { tenant: 1, 'standing.terms': 1 } },
    { name: 'spent', key: { tenant: 1, 'standing.spent': -1, _id: -1 } },
  ]);
  await db
    .collection(COLLECTIONS.passages)
    .createIndexes([{ name: 'terms', key: { tenant: 1, terms: 1, at: -1, _id: -1 } }]);
}

/** Lower numbers belong to unreleased versions. 0: the indexes of the database are being created. */
export const SCHEMA_VERSION = 8;

const META = 'meta';
const SCHEMA_ID = 'schema';
const APPLICATION = 'troupe';
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const POLL_MS = 100;
/** Maximum wait for another process that creates the indexes. */
const MAX_WAIT_MS = 600_000;

export async function prepareDatabase(
  db: Db,
  place: MongoPlace,
  { clock, slow }: { clock: Clock; slow: () => Promise<Db> },
): Promise<void> {
  const meta = db.collection<SchemaDoc>(META);
  const deadline = clock.monotonic() + MAX_WAIT_MS;
  let found = await readOrCreate(db, meta, place);
  while (found.version < SCHEMA_VERSION) {
    const owner = randomUUID();
    const now = clock.now();
    const mine = await meta.findOneAndUpdate(
      { _id: SCHEMA_ID, version: { $lt: SCHEMA_VERSION }, until: { $lt: now } },
      { $set: { owner, until: now + LEASE_MS } },
      { returnDocument: 'after' },
    );
    if (mine) await runSteps(await slow(), owner, clock);
    else if (clock.monotonic() > deadline) throw stillPreparing(place, found.version);
    else await clock.sleep(POLL_MS);
    found = await readOrCreate(db, meta, place);
  }
}

async function readOrCreate(db: Db, meta: Collection<SchemaDoc>, place: MongoPlace): Promise<SchemaDoc> {
  const found = (await meta.findOne({ _id: SCHEMA_ID })) ?? (await create(db, meta, place));
  if (found.application !== APPLICATION || !Number.isSafeInteger(found.version)) throw notOurs(place);
  if (found.version === 0 || found.version === SCHEMA_VERSION) return found;
  if (found.version < SCHEMA_VERSION) {
    const message = `database ${place.database} at ${place.hosts} has schema version ${found.version}, of an unreleased Troupe; this one has ${SCHEMA_VERSION}. Export its conversations with the old version and import them with this one.`;
    throw new TroupeError('store_older', message, {
      ...place,
      found: found.version,
      supported: SCHEMA_VERSION,
    });
  }
  const message = `database ${place.database} at ${place.hosts} has schema version ${found.version}; this Troupe supports up to ${SCHEMA_VERSION}. Run a newer one.`;
  throw new TroupeError('store_newer', message, {
    ...place,
    found: found.version,
    supported: SCHEMA_VERSION,
  });
}

async function create(db: Db, meta: Collection<SchemaDoc>, place: MongoPlace): Promise<SchemaDoc> {
  const names = new Set((await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name));
  if (Object.values(COLLECTIONS).some((name) => names.has(name))) {
    // Another process may have just created the schema document.
    const begun = await meta.findOne({ _id: SCHEMA_ID });
    if (begun) return begun;
    throw notOurs(place);
  }
  const doc: SchemaDoc = { _id: SCHEMA_ID, application: APPLICATION, version: 0, owner: '', until: 0 };
  try {
    await meta.insertOne(doc);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
  return doc;
}

async function runSteps(db: Db, owner: string, clock: Clock): Promise<void> {
  const meta = db.collection<SchemaDoc>(META);
  const ended = new AbortController();
  const renewing = renew(meta, owner, clock, ended.signal);
  try {
    await createIndexes(db);
    await meta.updateOne({ _id: SCHEMA_ID, owner }, { $set: { version: SCHEMA_VERSION } });
  } finally {
    ended.abort();
    await renewing;
    await meta.updateOne({ _id: SCHEMA_ID, owner }, { $set: { until: 0 } });
  }
}

async function renew(
  meta: Collection<SchemaDoc>,
  owner: string,
  clock: Clock,
  ended: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(RENEW_MS, ended);
    if (ended.aborted) return;
    try {
      await meta.updateOne({ _id: SCHEMA_ID, owner }, { $set: { until: clock.now() + LEASE_MS } });
    } catch {
      // The step itself reports the failure. If the lease ends early, only work is repeated.
    }
  }
}

function notOurs(place: MongoPlace): TroupeError {
  const message = `database ${place.database} at ${place.hosts} belongs to another program; choose another name`;
  return new TroupeError('store_corrupt', message, { ...place });
}

function stillPreparing(place: MongoPlace, version: number): TroupeError {
  const message = `database ${place.database} at ${place.hosts} is being prepared by another process (version ${version} of ${SCHEMA_VERSION}); try again later`;
  return new TroupeError('store_unavailable', message, {
    ...place,
    found: version,
    supported: SCHEMA_VERSION,
  });
}
