import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { TroupeError } from '../../../src/base/errors.ts';
import type { DocumentDriver } from '../../../src/store/documents/document-driver.ts';
import { openPostgresDriver } from '../src/store/connect-postgres.ts';
import { type PgBouncer, PGBOUNCER_ENV, startPgBouncer } from '../../../test/services/pgbouncer.ts';
import { startPostgresNode } from '../../../test/services/postgres.ts';
import { eventRow } from '../../../test/store/event-row-of.ts';
import { PATIENT, POSTGRES, POSTGRES_URL, postgresStage, withParameters } from './postgres-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };
const POOLER = JSON.parse(
  process.env[PGBOUNCER_ENV] ?? '{"not":"npm test finds it, vitest alone does not"}',
) as PgBouncer;
const NO_POOLER = 'not' in POOLER ? ` (skipped: no PgBouncer (${POOLER.not}))` : '';

describe.skipIf(!POSTGRES_URL)(POSTGRES, () => {
  test('a server that takes no writes is not ready, and is ready again when it does', async () => {
    await using server = await ownServer();
    const driver = await server.open();
    await driver.check();
    await server.sql('ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()');
    await expect.poll(() => outcomeOf(driver.check())).toContain('cannot execute INSERT in a read-only');
    expect(await outcomeOf(driver.append([eventRow('a', LOG)]))).toContain('store_unavailable');
    await server.sql('ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()');
    await expect.poll(() => outcomeOf(driver.check())).toBe('ok');
  });

  test('after a failover that leaves connections open, they are dropped at the first refused write', async () => {
    await using server = await ownServer();
    const driver = await server.open();
    // Opens as many connections as the pool may have.
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => driver.append([eventRow('a', { ...LOG, conversation: `c${n}` })])),
    );
    // From now on open connections refuse writes, and new connections accept them.
    await server.sql(
      'ALTER ROLE postgres SET default_transaction_read_only = off',
      'ALTER SYSTEM SET default_transaction_read_only = on',
      'SELECT pg_reload_conf()',
    );
    const during = (n: number) => outcomeOf(driver.append([eventRow(`during-${n}`, LOG)]));
    let tries = 0;
    await expect.poll(() => during((tries += 1))).toContain('read-only');
    const after = Array.from({ length: 40 }, (_, n) =>
      outcomeOf(driver.append([eventRow('b', { ...LOG, conversation: `c${n}` })])),
    );
    expect(new Set(await Promise.all(after))).toEqual(new Set(['ok']));
  });

  test.skipIf(NO_POOLER !== '')(
    `a pooler in transaction mode is refused before anything is set on its connections, one in session mode is not${NO_POOLER}`,
    async () => {
      const program = 'path' in POOLER ? POOLER.path : '';
      const shared = await startPgBouncer(program, { url: POSTGRES_URL, mode: 'transaction' });
      onTestFinished(shared.stop);
      expect(await outcomeOf(openPostgresDriver({ url: shared.url }))).toMatch(
        /^server_unsuitable: .* a pooler in transaction mode stands in front of it\. .*pool_mode = session/,
      );
      const client = new pg.Client(shared.url);
      await client.connect();
      const { rows } = await client.query('SHOW statement_timeout');
      expect(rows).toEqual([{ statement_timeout: '0' }]);
      await client.end();

      const own = await startPgBouncer(program, { url: POSTGRES_URL, mode: 'session' });
      onTestFinished(own.stop);
      const stage = postgresStage();
      const driver = await stage.open({ url: withParameters(own.url, { schema: stage.schema }) });
      expect(await outcomeOf(driver.append([eventRow('a', LOG)]))).toBe('ok');
    },
  );
});

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'ok',
    (error: unknown) => `${(error as TroupeError).code}: ${(error as Error).message}`,
  );
}

/** A server for one test alone, which may change its settings. */
async function ownServer() {
  const server = await startPostgresNode();
  if ('not' in server) throw new Error(server.not);
  const drivers: DocumentDriver[] = [];
  return {
    async open() {
      const driver = await openPostgresDriver({ url: withParameters(server.url, PATIENT) });
      drivers.push(driver);
      return driver;
    },
    async sql(...statements: string[]) {
      const options = '-c default_transaction_read_only=off';
      const client = new pg.Client({ connectionString: server.url, options });
      await client.connect();
      for (const statement of statements) await client.query(statement);
      await client.end();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(drivers.map((driver) => driver.close()));
      await server.stop();
    },
  };
}
