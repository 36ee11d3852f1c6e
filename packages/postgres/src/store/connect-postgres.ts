import pg from 'pg';
import {
  type Clock,
  createDocumentDriver,
  type DocumentDriver,
  type Documents,
  systemClock,
  TroupeError,
  wrapMethods,
} from '../troupe.ts';
import { type Database, inTransaction, openDatabase, type Queries, queriesOf, TYPES } from './database.ts';
import {
  createActorDocuments,
  createEntryDocuments,
  createPassageDocuments,
  createStandingDocuments,
} from './postgres-tables.ts';
import { postgresError, type PostgresPlace, urlError } from './postgres-error.ts';
import { createEventDocuments } from './postgres-events.ts';
import { prepareSchema, tablesOf } from './postgres-schema.ts';
import { createSteps } from './postgres-steps.ts';

/** These limits together bound every wait: for a connection at the start, for a lock, for an answer. */
const CONNECT_S = 3.5;
const STATEMENT_MS = 8_000;
/** This process waits for an answer, or for a free connection, this much longer than the server may work on a statement. */
const MARGIN_MS = 2_000;
const IDLE_MS = 120_000;
/** Connections of one process. A server allows 100 in all by default. */
const MAX_CONNECTIONS = 16;

const DEFAULT_NAME = 'troupe';
/** Oldest supported server: major version 13. */
const OLDEST = 130_000;

/**
 * Settings of a session. They are set by a statement, because a connection pooler would refuse them as connection options. A
 * write whose promise has resolved must be on the disk, whatever the default of the server is.
 */
const settings = (statementMs: number) => `
  SELECT set_config('statement_timeout', '${statementMs}', false),
    set_config('idle_in_transaction_session_timeout', '${statementMs}', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false),
    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)`;

interface PostgresTarget {
  config: pg.ClientConfig;
  place: PostgresPlace;
  connections: number;
  statementMs: number;
}

/**
 * Reads a URL of libpq's form, with three more parameters: `schema` is the schema of the tables, `max` the maximum number of
 * connections of this process, `statement_timeout` in ms. Throws `config_invalid`.
 */
function targetOf(url: string): PostgresTarget {
  const parsed = parseUrl(url);
  const { searchParams: given } = parsed;
  const schema = given.get('schema') ?? DEFAULT_NAME;
  const connections = numberOf(given.get('max') ?? MAX_CONNECTIONS);
  const statementMs = numberOf(given.get('statement_timeout') ?? STATEMENT_MS);
  const connectMs = 1_000 * numberOf(given.get('connect_timeout') ?? CONNECT_S);
  const place = {
    host: parsed.host || (given.get('host') ?? 'localhost'),
    database: decodeURIComponent(parsed.pathname.slice(1)),
    schema,
  };
  for (const own of ['schema', 'max', 'statement_timeout']) given.delete(own);
  const config = {
    connectionString: parsed.href,
    application_name: 'troupe',
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs + MARGIN_MS,
    keepAlive: true,
  };
  return { config, place, connections, statementMs };
}

function parseUrl(url: string): URL {
  const parsed = URL.parse(url);
  if (!parsed || !/^postgres(?:ql)?:$/.test(parsed.protocol)) throw urlError();
  if (!parsed.pathname || parsed.pathname === '/') parsed.pathname = `/${DEFAULT_NAME}`;
  return parsed;
}

function numberOf(given: string | number): number {
  const number = Number(given);
  if (!Number.isFinite(number) || number <= 0) throw urlError();
  return number;
}

export interface PostgresDriverOptions {
  url: string;
  clock?: Clock;
}

/** Opens a store for many processes on the primary of a PostgreSQL. */
export async function openPostgresDriver({
  url,
  clock = systemClock,
}: PostgresDriverOptions): Promise<DocumentDriver> {
  const { config, place, connections, statementMs } = targetOf(url);
  const set = settings(statementMs);
  await prepareDatabase(config, place, clock);
  const database = openDatabase({
    ...config,
    max: connections,
    connectionTimeoutMillis: statementMs + MARGIN_MS,
    idleTimeoutMillis: IDLE_MS,
    verify: (client, done) => client.query(set, (error) => done(error)),
  });
  return createDocumentDriver(createPostgresDocuments(database, place), {
    random: Math.random,
    sleep: (ms) => clock.sleep(ms),
    monotonic: () => clock.monotonic(),
  });
}

/** Checks the server and creates the schema, on a separate connection, so that an unsuitable server is refused first. */
async function prepareDatabase(config: pg.ClientConfig, place: PostgresPlace, clock: Clock): Promise<void> {
  await withConnection(config, place, async (queries) => {
    await checkServer(queries, place);
    await refuseSharedConnections(queries, config, place);
    await prepareSchema(queries, place, clock);
  });
}

/** Connects, works and closes the connection. Throws the errors of `postgresError`. */
async function withConnection<T>(
  config: pg.ClientConfig,
  place: PostgresPlace,
  work: (queries: Queries) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...config, types: TYPES });
  // The statement that fails reports the error.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(queriesOf(client));
  } catch (error) {
    throw postgresError(error, place);
  } finally {
    // Not awaited, because a server that never answers would block the caller.
    client.end().catch(() => undefined);
  }
}

interface ServerFacts {
  version: string;
  number: number;
  encoding: string;
  isStandby: boolean;
  standbys: number;
  isDurable: boolean;
}

async function readServer(queries: Queries): Promise<ServerFacts> {
  const [facts] = await queries.rows<ServerFacts>({
    text: `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
      current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isStandby",
      (SELECT count(*)::int FROM pg_stat_replication) AS standbys, current_setting('fsync') = 'on' AS "isDurable"`,
  });
  return facts!;
}

/** Refuses a server that takes no writes, is too old, or cannot store every text. */
async function checkServer(queries: Queries, place: PostgresPlace): Promise<ServerFacts> {
  const facts = await readServer(queries);
  const refuse = (found: string, remedy: string) =>
    new TroupeError('server_unsuitable', `PostgreSQL at ${place.host}: ${found}. ${remedy}`, {
      ...place,
      found,
    });
  if (facts.number < OLDEST) throw refuse(`this is version ${facts.version}`, 'Troupe needs 13 or later');
  if (facts.isStandby) throw refuse('this server is a standby', 'Troupe needs the primary');
  if (facts.encoding !== 'UTF8')
    throw refuse(
      `the database has the encoding ${facts.encoding}`,
      "Troupe needs one with the encoding UTF8: CREATE DATABASE troupe ENCODING 'UTF8' TEMPLATE template0",
    );
  return facts;
}

/**
 * Refuses a pooler that gives each transaction any connection of the server (transaction pooling). Clients would then share
 * settings and prepared statements, a write could be acknowledged before it is on the disk, and notifications would never
 * arrive. Such a pooler is recognized by two simultaneous clients that have the same process of the server.
 * https://www.pgbouncer.org/features.html
 */
async function refuseSharedConnections(
  queries: Queries,
  config: pg.ClientConfig,
  place: PostgresPlace,
): Promise<void> {
  const mine = await backendOf(queries);
  await withConnection(config, place, (others) =>
    inTransaction(others, async () => {
      if ((await backendOf(others)) !== mine && (await backendOf(queries)) === mine) return;
      const found = 'a pooler in transaction mode stands in front of it';
      throw new TroupeError(
        'server_unsuitable',
        `PostgreSQL at ${place.host}: ${found}. Troupe needs connections of its own: use the address of the server itself (with many hosts port 5432 instead of 6543, or the name without "-pooler"), or pool_mode = session`,
        { ...place, found },
      );
    }),
  );
}

async function backendOf(queries: Queries): Promise<number | undefined> {
  const [row] = await queries.rows<{ pid: number }>({ text: 'SELECT pg_backend_pid() AS pid' });
  return row?.pid;
}

const REMAINS =
  'PostgreSQL keeps older versions in its write-ahead log until it is recycled, and in unused parts of its files until it uses them again or VACUUM FULL rewrites them';

/** The documents of one schema. Owns the connections. */
function createPostgresDocuments(database: Database, place: PostgresPlace): Documents {
  const tables = tablesOf(place.schema);
  const guard = <T extends object>(target: T) =>
    wrapMethods(
      target,
      (method) =>
        (...args) =>
          method(...args).catch((error: unknown) => {
            throw postgresError(error, place);
          }),
    );
  return {
    events: guard(createEventDocuments(database, tables)),
    actors: guard(createActorDocuments(database, tables)),
    entries: guard(createEntryDocuments(database, tables)),
    standings: guard(createStandingDocuments(database, tables)),
    passages: guard(createPassageDocuments(database, tables)),
    ...guard({ step: createSteps(database, tables) }),
    async scrub() {
      const { events, entries, actors, standings, passages } = tables;
      await database.run({ text: `VACUUM ${[events, entries, actors, standings, passages].join(', ')}` });
      return [REMAINS];
    },
    onLost: (listener) => database.onLost(listener),
    close: () => database.close(),
  };
}

export interface PostgresFacts {
  /** Host and database, without credentials. */
  at: string;
  version: string;
  /** Number of connected standbys. A cloud service may replicate by other means, and then has none. */
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

const QUEUE_CONNECTIONS = 4;
/** Bounds how long a process that is paused within a transaction can block the others. */
const TRANSACTION_MS = 1_000;

/**
 * Rows of the queue may be lost, so their writes do not wait for the disk. Plans that read a whole table are excluded: every
 * statement of the queue has an index, and its tables grow faster than the statistics by which the server plans.
 */
const queueSettings = (statementMs: number) => `
  SELECT set_config('statement_timeout', '${statementMs}', false),
    set_config('idle_in_transaction_session_timeout', '${TRANSACTION_MS}', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),
    set_config('synchronous_commit', 'off', false)`;

interface QueueConnections {
  database: Database & { schema: string };
  /** Opens a separate connection for LISTEN. */
  connectListener: () => pg.Client;
  /** Converts an error of the driver. */
  errorOf: (thrown: unknown) => TroupeError;
}

/** Opens connections for wakes, broadcasts and admission, separate from those of the store. Throws `config_invalid`. */
export function openQueueConnections(url: string): QueueConnections {
  const { config, place, statementMs } = targetOf(url);
  const database = openDatabase({
    ...config,
    max: QUEUE_CONNECTIONS,
    connectionTimeoutMillis: statementMs + MARGIN_MS,
    idleTimeoutMillis: IDLE_MS,
    verify: (client, done) => client.query(queueSettings(statementMs), (error) => done(error)),
  });
  return {
    database: { ...database, schema: place.schema },
    connectListener: () => new pg.Client({ ...config, types: TYPES }),
    errorOf: (thrown) => postgresError(thrown, place),
  };
}
