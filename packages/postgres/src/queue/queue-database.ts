import { hash } from 'node:crypto';

type Value = string | number | boolean | null | readonly (string | number | null)[];

export interface QueueQueries {
  /** The rows of the answer. */
  rows<T extends object>(statement: { name?: string; text: string }, values?: readonly Value[]): Promise<T[]>;
}

/** Connections to one database, and the schema of the troupe. Throws errors of the driver, with the SQLSTATE as `code`. */
export interface QueueDatabase extends QueueQueries {
  schema: string;
  transaction<T>(work: (queries: QueueQueries) => Promise<T>): Promise<T>;
}

type QueueTables = ReturnType<typeof queueTablesOf>;

export function queueTablesOf(schema: string) {
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  return { wakes: `${quoted}.wakes`, admission: `${quoted}.admission` };
}

/** Name of the channel for LISTEN and NOTIFY. It contains the schema, because all schemas of a database share the names. */
export function channelOf(schema: string): string {
  return `troupe_${hash('sha256', schema, 'hex').slice(0, 16)}`;
}

/**
 * Time of the server, which is the same for all processes, in whole ms. Taken at the start of the statement, because a time
 * that changes during it could not be searched in an index.
 */
export const NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

/** 'TRUQ': id of the lock under which the tables are created. */
const LOCK = 0x54525551;
const NAME = 'text COLLATE "C" NOT NULL';
/** Wakes live for moments, so dead rows must be vacuumed early, before they slow the search for the next wake. */
const CHURN = 'fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000';

/**
 * Both tables are unlogged: they have no write-ahead log, and are empty after a crash of the server. Their rows may be lost
 * at any moment, at the cost of one sweep.
 *  - An actor has at most one wake that is not `timed`. `due`: it is not served before this time. `holder`: the process that
 *    serves it, up to `until` unless renewed. `again`: the actor was woken meanwhile. Waiting wakes are served by `rank`, then
 *    `id`. `front`: when it was added, no other wake of its family was waiting (`fair-share.ts`).
 *  - `admission` has sets: each row is a member of the set `scope`, from `since` to `until`.
 */
function createTables({ wakes, admission }: QueueTables): string {
  const waits = 'due IS NULL AND holder IS NULL';
  return `
  CREATE UNLOGGED TABLE IF NOT EXISTS ${wakes} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant ${NAME}, conversation ${NAME}, agent ${NAME}, family ${NAME},
    timed boolean NOT NULL, rank bigint NOT NULL, front boolean NOT NULL, since bigint NOT NULL,
    due bigint, begun boolean NOT NULL DEFAULT false,
    holder text, until bigint, again boolean NOT NULL DEFAULT false
  ) WITH (${CHURN});
  CREATE UNIQUE INDEX IF NOT EXISTS wakes_by_actor ON ${wakes} (tenant, conversation, agent) WHERE NOT timed;
  CREATE INDEX IF NOT EXISTS wakes_by_rank ON ${wakes} (rank, id) WHERE ${waits};
  CREATE INDEX IF NOT EXISTS wakes_by_family ON ${wakes} (tenant, family, rank) WHERE ${waits};
  CREATE INDEX IF NOT EXISTS wakes_by_tenant ON ${wakes} (tenant, rank) WHERE ${waits} AND front;
  CREATE INDEX IF NOT EXISTS wakes_timed ON ${wakes} (due) WHERE timed;
  CREATE INDEX IF NOT EXISTS wakes_held_back ON ${wakes} (due) WHERE due IS NOT NULL AND NOT timed;
  CREATE INDEX IF NOT EXISTS wakes_held ON ${wakes} (holder) WHERE holder IS NOT NULL;
  CREATE UNLOGGED TABLE IF NOT EXISTS ${admission} (
    scope ${NAME}, member ${NAME}, since bigint NOT NULL, until bigint NOT NULL,
    PRIMARY KEY (scope, member)
  ) WITH (${CHURN});`;
}

/** Creates the tables of the queue in the schema of the store, which must exist. */
export async function ensureTables(database: QueueDatabase): Promise<void> {
  const tables = queueTablesOf(database.schema);
  const found = await database.rows({
    text: `SELECT 1 WHERE to_regclass('${literal(tables.wakes)}') IS NOT NULL AND to_regclass('${literal(tables.admission)}') IS NOT NULL`,
  });
  if (found.length > 0) return;
  await database.transaction(async (queries) => {
    // Without the lock, two processes that create the same table at once would fail.
    await queries.rows({ text: `SELECT pg_advisory_xact_lock(${LOCK}, hashtext($1))` }, [database.schema]);
    // Unlike their rows, the tables themselves must survive a crash.
    await queries.rows({ text: `SET LOCAL synchronous_commit = on; ${createTables(tables)}` });
  });
}

function literal(text: string): string {
  return text.replaceAll("'", "''");
}

/** Whether the error says that a table is missing. */
export function isTableMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '42P01';
}

/** A named statement, which each connection parses once. Only for fixed texts, so that there are few names. */
export function prepared(text: string): { name: string; text: string } {
  return { name: `troupe-${hash('sha256', text, 'base64url').slice(0, 20)}`, text };
}

/**
 * Collects the items that are added while a call runs, and passes them together to the next call. Under load one statement
 * serves many items; without load no item waits.
 */
export function createBatches<T, R>(call: (items: T[]) => Promise<R>, most: number) {
  let waiting: { item: T; resolve: (result: R) => void; reject: (error: unknown) => void }[] = [];
  let calling: Promise<void> | null = null;

  async function run(): Promise<void> {
    // Lets items of the same turn of the event loop join the first call.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting.splice(0, most);
      try {
        const result = await call(batch.map(({ item }) => item));
        for (const { resolve } of batch) resolve(result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  return {
    add: (item: T): Promise<R> =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        calling ??= run().finally(() => (calling = null));
      }),
    /** Resolves when no call is running. */
    async idle(): Promise<void> {
      while (calling) await calling;
    },
  };
}
