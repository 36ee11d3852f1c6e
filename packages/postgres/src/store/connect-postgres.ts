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

/** Together they bound every wait: for a connection at the start, for a lock, for an answer. */
const CONNECT_S = 3.5;
const STATEMENT_MS = 8_000;
/** How much longer this process waits for an answer, or for a connection of its own, than the server works on a statement. */
const MARGIN_MS = 2_000;
const IDLE_MS = 120_000;
/** A server has 100 connections unless it is told otherwise. */
const MAX_CONNECTIONS = 16;

const DEFAULT_NAME = 'troupe';
/** Major version 13. */
const OLDEST = 130_000;

/**
 * Set by a statement and not in the connection's options, which a connection pooler would refuse. A write whose promise has
 * resolved must be on the disk, whatever the default of the server is.
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
 * Reads a url of the form that libpq knows, and parameters beside it: `schema`, the schema of the tables; `max`, the most
 * connections of this process; `statement_timeout`, ms. Throws `config_invalid`.
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

/** A store for many processes: the primary of a PostgreSQL. */
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

/** On a connection of its own, so that an unsuitable server is refused before anything is opened. */
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
  // Its failing statement reports it.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(queriesOf(client));
  } catch (error) {
    throw postgresError(error, place);
  } finally {
    // Not awaited: a server that never answers would block our caller.
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
 * Refuses a pooler that gives each transaction some connection of the server. Settings and prepared statements of one client would
 * be those of another, a write may then be acknowledged before it is on the disk, and notifications never arrive. Two clients at
 * the same time have the same process of the server only behind such a pooler.
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

const QUEUE_CONNECTIONS = 4;
/** A process that stands still within a transaction holds up the others no longer than this. */
const TRANSACTION_MS = 1_000;

/**
 * What the queue holds may be lost, so its writes do not wait for the disk. Every statement of it has an index, and its
 * tables grow from nothing within moments, faster than statistics follow: so plans that read the whole table are excluded.
 */
const queueSettings = (statementMs: number) => `
  SELECT set_config('statement_timeout', '${statementMs}', false),
    set_config('idle_in_transaction_session_timeout', '${TRANSACTION_MS}', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),
    set_config('synchronous_commit', 'off', false)`;

interface QueueConnections {
  database: Database & { schema: string };
  /** A connection of its own, to listen on. */
  connectListener: () => pg.Client;
  /** What an error of the driver means to the operator. */
  errorOf: (thrown: unknown) => TroupeError;
}

/** Connections for wakes, notices and admission, beside those of a store that is open. Throws `config_invalid`. */
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
