import { type Clock, TroupeError } from '../troupe.ts';
import { inTransaction, type Queries } from './database.ts';
import type { PostgresPlace } from './postgres-error.ts';

/** The tables, each with the name of its schema. */
export type Tables = ReturnType<typeof tablesOf>;

export function tablesOf(schema: string) {
  const named = (table: string) => `${quoted(schema)}.${table}`;
  return {
    meta: named('meta'),
    conversations: named('conversations'),
    standings: named('standings'),
    passages: named('passages'),
    events: named('events'),
    actors: named('actors'),
    entries: named('entries'),
  };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Sorts by code points, whatever the locale of the server. */
const NAME = 'text COLLATE "C" NOT NULL';
const LOG = `tenant ${NAME}, conversation ${NAME}`;

/**
 *  - `standing` of a conversation is the seq of its standing; see `standings.ts`. `behind` is a column, because the server
 *    would otherwise estimate the number of such rows far too high and not use the index.
 *  - `addressed` of an event is false if it addresses no agent, or if its conversation is being removed.
 *  - Each term of `terms` begins with the tenant, because an index of this kind can have no other column.
 */
const tablesText = (t: Tables) => `
  CREATE TABLE ${t.conversations} (
    ${LOG}, head bigint NOT NULL, at bigint NOT NULL, standing bigint NOT NULL DEFAULT 0,
    behind boolean NOT NULL GENERATED ALWAYS AS (head > standing) STORED,
    PRIMARY KEY (tenant, conversation)
  );
  CREATE INDEX conversations_by_time ON ${t.conversations} (tenant, at, conversation);
  CREATE INDEX conversations_behind ON ${t.conversations} (tenant, at, conversation) WHERE behind;
  CREATE TABLE ${t.standings} (
    ${LOG}, rank int NOT NULL, since bigint NOT NULL, cost bigint NOT NULL, spent bigint NOT NULL, owner ${NAME},
    agents text[] NOT NULL, words ${NAME}, terms tsvector NOT NULL, data ${NAME},
    PRIMARY KEY (tenant, conversation),
    FOREIGN KEY (tenant, conversation) REFERENCES ${t.conversations} ON DELETE CASCADE
  );
  CREATE INDEX standings_by_rank ON ${t.standings} (tenant, rank, since, conversation);
  CREATE INDEX standings_by_since ON ${t.standings} (tenant, since, conversation);
  CREATE INDEX standings_by_cost ON ${t.standings} (tenant, cost, conversation);
  CREATE INDEX standings_by_spent ON ${t.standings} (tenant, spent, conversation);
  CREATE INDEX standings_terms ON ${t.standings} USING gin (terms);
  CREATE TABLE ${t.passages} (
    ${LOG}, first bigint NOT NULL, last bigint NOT NULL, at bigint NOT NULL, terms tsvector NOT NULL,
    PRIMARY KEY (tenant, conversation, first),
    FOREIGN KEY (tenant, conversation) REFERENCES ${t.conversations} ON DELETE CASCADE
  );
  CREATE INDEX passages_by_time ON ${t.passages} (tenant, at, conversation, first);
  CREATE INDEX passages_terms ON ${t.passages} USING gin (terms);
  CREATE TABLE ${t.events} (
    ${LOG}, seq bigint NOT NULL, id ${NAME}, at bigint NOT NULL, kind ${NAME}, recipients text[] NOT NULL,
    addressed boolean NOT NULL, hash ${NAME}, chain text COLLATE "C", tokens bigint NOT NULL, turn text COLLATE "C",
    data ${NAME},
    PRIMARY KEY (tenant, conversation, seq), UNIQUE (tenant, conversation, id)
  );
  CREATE INDEX events_addressed ON ${t.events} (at) WHERE addressed;
  CREATE TABLE ${t.actors} (
    ${LOG}, agent ${NAME}, fence bigint NOT NULL, owner ${NAME}, until bigint NOT NULL, processed bigint NOT NULL,
    turn text COLLATE "C", abort text COLLATE "C", parked text COLLATE "C", outbox boolean NOT NULL,
    "wakeAt" bigint, data ${NAME},
    PRIMARY KEY (tenant, conversation, agent)
  ) WITH (fillfactor = 80);
  CREATE INDEX actors_unfinished ON ${t.actors} (agent) WHERE turn IS NOT NULL OR outbox;
  CREATE INDEX actors_timed ON ${t.actors} ("wakeAt") WHERE "wakeAt" IS NOT NULL;
  CREATE TABLE ${t.entries} (
    tenant ${NAME}, namespace ${NAME}, key ${NAME}, at bigint NOT NULL, data ${NAME},
    PRIMARY KEY (tenant, namespace, key)
  );
  CREATE INDEX entries_by_age ON ${t.entries} (namespace, at) WHERE namespace IN ('journal', 'effect');
  `;

/** Stored in `meta`. Lower numbers belong to unreleased versions. */
export const SCHEMA_VERSION = 3;

const APPLICATION = 'troupe';
/** 'TRUP': id of the lock under which the schema is created. */
const LOCK = 0x54525550;
const POLL_MS = 100;
/** Maximum wait for another process that creates the schema. */
const MAX_WAIT_MS = 600_000;

/**
 * Creates the schema in one transaction, under a lock that one process has at a time. The lock is polled, because a wait inside
 * the server would need a connection without a time limit.
 */
export async function prepareSchema(queries: Queries, place: PostgresPlace, clock: Clock): Promise<void> {
  const tables = tablesOf(place.schema);
  if ((await versionOf(queries, tables, place)) === SCHEMA_VERSION) return;
  const deadline = clock.monotonic() + MAX_WAIT_MS;
  while (!(await inTransaction(queries, () => tryPrepare(queries, tables, place)))) {
    if (clock.monotonic() > deadline) throw stillPreparing(place);
    await clock.sleep(POLL_MS);
  }
}

/** Returns false if another process has the lock. */
async function tryPrepare(queries: Queries, tables: Tables, place: PostgresPlace): Promise<boolean> {
  const lock = `SELECT pg_try_advisory_xact_lock(${LOCK}, hashtext($1)) AS taken`;
  const [answer] = await queries.rows<{ taken: boolean }>({ text: lock }, [place.schema]);
  if (!answer?.taken) return false;
  // Read again, because another process may have created the schema meanwhile.
  const version = await versionOf(queries, tables, place);
  if (version === SCHEMA_VERSION) return true;
  await queries.run({ text: "SELECT set_config('statement_timeout', '0', true)" });
  await create(queries, tables, place);
  await queries.run({ text: tablesText(tables), query_timeout: MAX_WAIT_MS });
  await queries.run({ text: `UPDATE ${tables.meta} SET version = $1` }, [SCHEMA_VERSION]);
  return true;
}

async function create(queries: Queries, { meta }: Tables, { schema }: PostgresPlace): Promise<void> {
  // Looked up first, because a user may have rights in an existing schema and no right to create one.
  const [found] = await queries.rows({ text: 'SELECT 1 FROM pg_namespace WHERE nspname = $1' }, [schema]);
  if (!found) await queries.run({ text: `CREATE SCHEMA ${quoted(schema)}` });
  await queries.run({ text: `CREATE TABLE ${meta} (application text NOT NULL, version int NOT NULL)` });
  await queries.run({ text: `INSERT INTO ${meta} VALUES ($1, 0)` }, [APPLICATION]);
}

/** The version of the schema; 0 if there are no tables yet. */
async function versionOf(queries: Queries, { meta }: Tables, place: PostgresPlace): Promise<number> {
  const text =
    'SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1';
  const names = await queries.rows<{ relname: string }>({ text }, [place.schema]);
  if (names.length === 0) return 0;
  if (!names.some(({ relname }) => relname === 'meta')) throw notOurs(place);
  const [found] = await queries.rows<{ application: unknown; version: unknown }>({
    text: `SELECT to_jsonb(meta) ->> 'application' AS application, (to_jsonb(meta) -> 'version')::text AS version FROM ${meta} AS meta`,
  });
  const version = Number(found?.version);
  if (found?.application !== APPLICATION || !Number.isSafeInteger(version)) throw notOurs(place);
  if (version === 0 || version === SCHEMA_VERSION) return version;
  if (version < SCHEMA_VERSION) {
    const message = `schema ${place.schema} of database ${place.database} at ${place.host} has version ${version}, of an unreleased Troupe; this one has ${SCHEMA_VERSION}. Export its conversations with the old version and import them with this one.`;
    throw new TroupeError('store_older', message, { ...place, found: version, supported: SCHEMA_VERSION });
  }
  const message = `schema ${place.schema} of database ${place.database} at ${place.host} has version ${version}; this Troupe supports up to ${SCHEMA_VERSION}. Run a newer one.`;
  throw new TroupeError('store_newer', message, { ...place, found: version, supported: SCHEMA_VERSION });
}

function notOurs(place: PostgresPlace): TroupeError {
  const message = `schema ${place.schema} of database ${place.database} at ${place.host} belongs to another program; name another with ?schema=`;
  return new TroupeError('store_corrupt', message, { ...place });
}

function stillPreparing(place: PostgresPlace): TroupeError {
  const message = `schema ${place.schema} of database ${place.database} at ${place.host} is being created by another process; try again later`;
  return new TroupeError('store_unavailable', message, { ...place, supported: SCHEMA_VERSION });
}
