import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { DocumentDriver } from '../../../src/store/documents/document-driver.ts';
import { openPostgresDriver, type PostgresDriverOptions } from '../src/store/connect-postgres.ts';

export const POSTGRES_URL = process.env['POSTGRES_URL'] ?? '';

/** Part of the names of suites that are skipped without a server. */
export const POSTGRES = POSTGRES_URL ? 'postgres' : 'postgres (skipped: no PostgreSQL)';

export interface PostgresStage {
  /** Names the schema of this stage. */
  url: string;
  schema: string;
  /** Runs a statement beside the store, with `t.` for the name of the schema. */
  sql<T extends object>(text: string, values?: unknown[]): Promise<T[]>;
  open(options?: Partial<PostgresDriverOptions>): Promise<DocumentDriver>;
}

/** A schema for one test, dropped after it. */
export function postgresStage(): PostgresStage {
  const stage = newStage();
  onTestFinished(() => stage.drop());
  return stage;
}

/** Emptied schemas of closed drivers. Emptying a schema takes a tenth of the time of creating one. */
const spare: Stage[] = [];
const TABLES = ['conversations', 'standings', 'passages', 'events', 'actors', 'entries'];

/** A driver of an empty schema. */
export async function openPostgresOnce(): Promise<DocumentDriver> {
  const stage = spare.pop() ?? newStage();
  const driver = await stage.open({ url: withParameters(stage.url, { max: '4' }) });
  let closed: Promise<void> | undefined;
  const close = async () => {
    await driver.close();
    await stage.sql(TABLES.map((table) => `DELETE FROM t.${table}`).join(';'));
    spare.push(stage);
  };
  return { ...driver, close: () => (closed ??= close()) };
}

/** Drops the schemas of `openPostgresOnce`. */
export async function dropSpareSchemas(): Promise<void> {
  await Promise.all(spare.map((stage) => stage.drop()));
}

type Stage = ReturnType<typeof newStage>;

function newStage() {
  const schema = `troupe-test-${randomUUID().slice(0, 13)}`;
  const url = withParameters(POSTGRES_URL, { schema, ...PATIENT });
  const drivers: DocumentDriver[] = [];

  async function sql<T extends object>(text: string, values: unknown[] = []): Promise<T[]> {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    try {
      return (await client.query(text.replaceAll(/\bt\./g, `"${schema}".`), values)).rows as T[];
    } finally {
      await client.end();
    }
  }

  return {
    url,
    schema,
    sql,
    async open(options: Partial<PostgresDriverOptions> = {}): Promise<DocumentDriver> {
      const driver = await openPostgresDriver({ url, ...options });
      drivers.push(driver);
      return driver;
    },
    async drop() {
      await Promise.all(drivers.map((driver) => driver.close()));
      await sql(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
    },
  };
}

/** Limits that only a hanging server exceeds, even on a busy machine. */
export const PATIENT = { connect_timeout: '60', statement_timeout: '60000' };

export function withParameters(url: string, parameters: Record<string, string>): string {
  const changed = new URL(url);
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, value);
  return changed.href;
}
