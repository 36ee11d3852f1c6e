import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ErrorCode, TroupeError } from '../../../src/base/errors.ts';
import type { DocumentDriver } from '../../../src/store/documents/document-driver.ts';
import { openPostgresDriver } from '../src/store/connect-postgres.ts';
import { SCHEMA_VERSION } from '../src/store/postgres-schema.ts';
import { rejectsWith } from '../../testing/src/store-stage.ts';
import { cutProxy } from '../../../test/store/cut-proxy.ts';
import { eventRow, verified } from '../../../test/store/event-row-of.ts';
import { POSTGRES, POSTGRES_URL, postgresStage, withParameters } from './postgres-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };
const ALL = { ...LOG, after: 0, limit: 10_000 };
const PASSWORD = 'geheim-77';

async function refused(code: ErrorCode, url: string): Promise<TroupeError> {
  const error = await rejectsWith(code, openPostgresDriver({ url }));
  expect(JSON.stringify([error.message, error.data])).not.toContain(PASSWORD);
  return error;
}

/** Repeats the append with the same id until it succeeds, as callers must (S5). */
async function appendForSure(driver: DocumentDriver, id: string): Promise<number> {
  for (;;) {
    try {
      return (await driver.append([eventRow(id, LOG)]))[0]!.seq;
    } catch (error) {
      expect(error).toMatchObject({ code: 'store_unavailable' });
    }
  }
}

test('a url that is none, and a server that does not answer, are named without the password', async () => {
  await refused('config_invalid', `postgres://ada:${PASSWORD}@host:none/x`);
  await refused('config_invalid', `mysql://ada:${PASSWORD}@host/x`);
  await refused('config_invalid', `postgres://ada:${PASSWORD}@host/x?max=many`);
  const error = await refused('store_unavailable', `postgres://ada:${PASSWORD}@127.0.0.1:9/x`);
  expect(error.message).toContain('127.0.0.1:9');
});

test('a server that accepts and never answers is reported within its time limit', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await refused('store_unavailable', `postgres://ada:${PASSWORD}@127.0.0.1:${port}/x?connect_timeout=0.2`);
});

describe.skipIf(!POSTGRES_URL)(POSTGRES, () => {
  test('eight processes append to one conversation and remove it: the log is dense and chained', async () => {
    const stage = postgresStage();
    const url = withParameters(stage.url, { max: '2' });
    const drivers = await Promise.all(Array.from({ length: 8 }, () => stage.open({ url })));
    const [one] = drivers;
    const lots = drivers.flatMap((driver, writer) =>
      Array.from({ length: 6 }, (_, call) => async () => {
        const rows = ['a', 'b', 'c'].map((id) => eventRow(`w${writer}-${call}-${id}`, LOG));
        return (await driver.append(rows)).map(({ kind }) => kind);
      }),
    );
    const outcomes = await Promise.all(lots.map((append) => append()));
    expect(new Set(outcomes.flat())).toEqual(new Set(['appended']));
    const rows = await one!.readEvents(ALL);
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 144 }, (_, index) => index + 1));
    expect(await verified(one!)).toMatchObject({ events: 144, problems: [] });
    expect((await drivers[1]!.conversations({ tenant: 'acme', limit: 5 })).rows).toEqual([
      { id: 'talk', head: 144, at: 1000 },
    ]);
    expect(await one!.deleteConversation(LOG)).toEqual({ events: 144, actors: 0 });
    expect(await drivers[7]!.append([eventRow('x', LOG)])).toEqual([{ kind: 'appended', seq: 1 }]);
    expect(await one!.readEvents(ALL)).toMatchObject([{ seq: 1, id: 'x' }]);
  });

  test('a size limit counts bytes, and no event behind it is sent, whatever its characters', async () => {
    const driver = await postgresStage().open();
    const texts = ['\0'.repeat(50), '\ud800'.repeat(40), 'ä'.repeat(30), 'x', 'y'];
    await driver.append(texts.map((data, index) => ({ ...eventRow(`e${index}`, LOG), data })));
    const upTo = async (maxBytes: number) =>
      (await driver.readEvents({ ...ALL, maxBytes })).map(({ data }) => data);
    expect(await upTo(50)).toEqual(texts.slice(0, 1));
    expect(await upTo(51)).toEqual(texts.slice(0, 2));
    expect(await upTo(50 + 120 + 60)).toEqual(texts.slice(0, 3));
    expect(await upTo(1_000)).toEqual(texts);
  });

  test('connections cut during appends: every event once, a dense log', async () => {
    const stage = postgresStage();
    const { hostname: host, port } = new URL(POSTGRES_URL);
    const proxy = await cutProxy({ host, port: Number(port || 5432) });
    const proxied = new URL(stage.url);
    proxied.host = `127.0.0.1:${proxy.port}`;
    const driver = await stage.open({ url: proxied.href });
    const ids = Array.from({ length: 60 }, (_, index) => `e${index}`);
    const queue = ids.values();
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (const id of queue) {
          if (Number(id.slice(1)) % 15 === 14) proxy.cut();
          await appendForSure(driver, id);
        }
      }),
    );
    const rows = await (await stage.open()).readEvents(ALL);
    expect(rows.map(({ seq }) => seq)).toEqual(ids.map((_, index) => index + 1));
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(ids));
    await proxy.refuse();
    await rejectsWith('store_unavailable', driver.head(LOG));
    await proxy.accept();
    expect(await appendForSure(driver, 'last')).toBe(61);
  });

  test('several processes create a schema once; a newer one, an unreleased one and one of another program are refused unchanged', async () => {
    const stage = postgresStage();
    await Promise.all(Array.from({ length: 4 }, () => stage.open()));
    expect(await stage.sql('SELECT * FROM t.meta')).toEqual([
      { application: 'troupe', version: SCHEMA_VERSION },
    ]);
    await stage.sql('UPDATE t.meta SET version = version + 1');
    const newer = await rejectsWith('store_newer', stage.open());
    expect(newer.data).toMatchObject({ found: SCHEMA_VERSION + 1, supported: SCHEMA_VERSION });
    expect(await stage.sql('SELECT version FROM t.meta')).toEqual([{ version: SCHEMA_VERSION + 1 }]);
    await stage.sql('UPDATE t.meta SET version = version - 2');
    const older = await rejectsWith('store_older', stage.open());
    expect(older.message).toContain('import them with this one');
    expect(await stage.sql('SELECT version FROM t.meta')).toEqual([{ version: SCHEMA_VERSION - 1 }]);
    await stage.sql("UPDATE t.meta SET application = 'mine'");
    expect(await rejectsWith('store_corrupt', stage.open())).toMatchObject({
      message: expect.stringContaining('another program') as string,
    });
    await stage.sql('DROP TABLE t.meta');
    await rejectsWith('store_corrupt', stage.open());
  });

  test('a missing table, a right that is missing, an unknown user and an unknown database are named', async () => {
    const stage = postgresStage();
    const driver = await stage.open();
    await stage.sql('DROP TABLE t.entries');
    await rejectsWith('store_corrupt', driver.readEntry({ tenant: 'a', namespace: 'note', key: 'k' }));
    const other = new URL(stage.url);
    other.pathname = '/no-such-database';
    expect((await refused('config_invalid', other.href)).message).toContain('the database does not exist');
    other.pathname = new URL(POSTGRES_URL).pathname;
    other.username = 'nobody-of-this-name';
    other.password = PASSWORD;
    await refused('config_invalid', other.href);
    const role = `${stage.schema}-role`;
    await stage.sql(`CREATE ROLE "${role}" LOGIN PASSWORD '${PASSWORD}'`);
    onTestFinished(async () => void (await stage.sql(`DROP ROLE "${role}"`)));
    other.username = role;
    await refused('data_unwritable', other.href);
  });

  test('a database that cannot store every text is refused', async () => {
    const stage = postgresStage();
    const latin = `${stage.schema}-latin`;
    await stage.sql(`CREATE DATABASE "${latin}" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    onTestFinished(async () => void (await stage.sql(`DROP DATABASE "${latin}"`)));
    const url = new URL(stage.url);
    url.pathname = `/${latin}`;
    expect((await refused('server_unsuitable', url.href)).message).toContain('UTF8');
  });

  test('a write waits for the disk, even if the server does not by default', async () => {
    const stage = postgresStage();
    const url = withParameters(stage.url, { options: '-c synchronous_commit=off', max: '1' });
    const driver = await stage.open({ url });
    await stage.sql(
      `CREATE FUNCTION t.note() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN NEW.data := current_setting('synchronous_commit'); RETURN NEW; END $$;
       CREATE TRIGGER note BEFORE INSERT ON t.entries FOR EACH ROW EXECUTE FUNCTION t.note()`,
    );
    const key = { tenant: 'a', namespace: 'effect', key: 'k' } as const;
    await driver.putOnce(key, 'x', 1);
    expect(await driver.readEntry(key)).toBe('on');
  });

  test('every sorted index of the schema serves a query of the store', async () => {
    const stage = postgresStage();
    // With few rows the server would otherwise read whole tables and sort them.
    const options = '-c enable_seqscan=off -c enable_sort=off';
    const url = withParameters(stage.url, { application_name: stage.schema, options });
    const driver = await stage.open({ url });
    await useEverything(driver);
    await driver.close();
    // The server publishes the read counts of a connection when the connection ends.
    const running = 'SELECT 1 FROM pg_stat_activity WHERE application_name = $1';
    while ((await stage.sql(running, [stage.schema])).length > 0);
    // Indexes of words are left out, because they pay only with many rows.
    const unused = `SELECT indexrelname FROM pg_stat_user_indexes
      WHERE schemaname = $1 AND idx_scan = 0 AND indexrelname NOT LIKE '%_terms'`;
    expect(await stage.sql(unused, [stage.schema])).toEqual([]);
  });
});

const CONDITIONS = [
  {},
  { ranks: [3] },
  { ranks: [1, 3] },
  { agent: 'worker', owner: 'o', text: 'w', from: 0, to: 9 },
  { terms: [{ term: 'w', whole: false }] },
  { ranges: [{ from: 'a', to: 'z' }] },
];

async function useEverything(driver: DocumentDriver): Promise<void> {
  const tenant = LOG.tenant;
  const key = { ...LOG, agent: 'worker' };
  const entry = { tenant, namespace: 'journal', key: 'k' } as const;
  await driver.append([eventRow('a', { ...LOG, to: ['worker'] })]);
  await driver.append(['a', 'b', 'c'].map((id) => eventRow(id, LOG)));
  await driver.head(LOG);
  await driver.readEvents({ ...ALL, maxBytes: 5 });
  await driver.readEvent({ ...LOG, id: 'a' });
  await driver.addressed({ ...key, after: 0, upTo: 9 });
  for (const more of [{}, { before: { at: 5, id: 'x' } }, { ranges: [{ from: 'a', to: 'z' }] }])
    await driver.conversations({ tenant, limit: 5, ...more });
  const sorted = { seq: 1, rank: 3, since: 1, cost: 1, spent: 1 };
  const said = { owner: 'o', agents: ['worker'], words: 'word', terms: ['word'], data: '{}' };
  await driver.inbox.saveStanding(LOG, { ...sorted, ...said });
  await driver.inbox.standingSeq(LOG);
  for (const filter of CONDITIONS) {
    await driver.inbox.countStandings({ tenant, ...filter });
    for (const order of ['urgent', 'newest', 'oldest', 'costliest', 'mostSpent'] as const)
      await driver.inbox.standings({ tenant, order, limit: 5, ...filter });
  }
  await driver.inbox.behind({ tenant, limit: 5 });
  await driver.inbox.savePassages(LOG, [{ first: 1, last: 1, at: 1, terms: ['word'] }]);
  await driver.inbox.findPassages({ tenant, terms: [{ term: 'w', whole: false }], limit: 5 });
  await driver.acquire(key, { owner: 'o', now: 1, until: 1 });
  await driver.compareAndSet(key, { fence: 1, turn: null, notAborted: true }, { turn: 't' });
  await driver.requestAbort(key, 't');
  await driver.park(key, null, null);
  await driver.listActors(LOG);
  await driver.due({ now: 9, clock: 9, since: 0, limit: 5 });
  await driver.putOnce(entry, 'x', 1);
  await driver.readEntries([entry]);
  await driver.entryKeys({ tenant, namespace: 'journal', after: 'a', before: 'z', limit: 5 });
  await driver.swap(entry, 'x', 'y');
  await driver.removeEntries([entry]);
  await driver.expire('journal', 9);
  await driver.deleteConversation(LOG);
}
