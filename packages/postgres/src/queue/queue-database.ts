import { hash } from 'node:crypto';

type Value = string | number | boolean | null | readonly (string | number | null)[];

export interface QueueQueries {
  /** The rows of the answer. */
  rows<T extends object>(statement: { name?: string; text: string }, values?: readonly Value[]): Promise<T[]>;
}

/** Connections to one database, and the schema of the troupe. Errors are those of the driver, with their SQLSTATE as `code`. */
export interface QueueDatabase extends QueueQueries {
  schema: string;
  transaction<T>(work: (queries: QueueQueries) => Promise<T>): Promise<T>;
}

type QueueTables = ReturnType<typeof queueTablesOf>;

export function queueTablesOf(schema: string) {
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  return { wakes: `${quoted}.wakes`, admission: `${quoted}.admission` };
}

/** Channel of LISTEN and NOTIFY, which all schemas of a database share. */
export function channelOf(schema: string): string {
  return `troupe_${hash('sha256', schema, 'hex').slice(0, 16)}`;
}

/**
 * Whole ms of the server's clock, which is the same for all processes. At the start of the statement: a time that changes
 * meanwhile could not be looked up in an index.
 */
export const NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

/** Of the lock that creates the tables: 'TRUQ'. */
const LOCK = 0x54525551;
const NAME = 'text COLLATE "C" NOT NULL';
/** A wake is written and removed within moments. Dead rows are cleared away before they slow the search for the next one. */
const CHURN = 'fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000';

/**
 * Both tables are unlogged: they are not written ahead, and are empty after a crash of the server. All that is in them may
 * be lost at any moment, at the cost of one sweep.
 *  - A wake that is not `timed` is the only one of its actor. `due`: not before this time. `holder` serves it, until
 *    `until` unless renewed; `again`: it was woken meanwhile. Waiting ones are served by `rank`, then `id`. `front`: it
 *    was the first of its family (`fair-queue.ts`).
 *  - `admission` has sets: members of a `scope`, each until a time, and since when.
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

/** Creates the tables of the queue in the schema of the store, which exists. */
export async function ensureTables(database: QueueDatabase): Promise<void> {
  const tables = queueTablesOf(database.schema);
  const found = await database.rows({
    text: `SELECT 1 WHERE to_regclass('${literal(tables.wakes)}') IS NOT NULL AND to_regclass('${literal(tables.admission)}') IS NOT NULL`,
  });
  if (found.length > 0) return;
  await database.transaction(async (queries) => {
    // Two processes that create the same table at once would fail.
    await queries.rows({ text: `SELECT pg_advisory_xact_lock(${LOCK}, hashtext($1))` }, [database.schema]);
    // Unlike their rows, the tables themselves outlive a crash.
    await queries.rows({ text: `SET LOCAL synchronous_commit = on; ${createTables(tables)}` });
  });
}

function literal(text: string): string {
  return text.replaceAll("'", "''");
}

/** Whether a table is missing, as after a restore without them. */
export function isTableMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '42P01';
}

/** For fixed texts, of which there are few: parsed once per connection. */
export function prepared(text: string): { name: string; text: string } {
  return { name: `troupe-${hash('sha256', text, 'base64url').slice(0, 20)}`, text };
}

/**
 * Gathers what is asked for while one call is under way, and passes it on together in the next: under load a statement
 * serves many, without it nothing waits.
 */
export function createBatches<T, R>(call: (items: T[]) => Promise<R>, most: number) {
  let waiting: { item: T; resolve: (result: R) => void; reject: (error: unknown) => void }[] = [];
  let calling: Promise<void> | null = null;

  async function run(): Promise<void> {
    // What the same turn of the event loop asks for comes along.
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
    /** Resolves when nothing is under way. */
    async idle(): Promise<void> {
      while (calling) await calling;
    },
  };
}
