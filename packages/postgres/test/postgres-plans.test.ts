import { describe, expect, onTestFinished, test } from 'vitest';
import type { StoreDriver } from '../../../src/store/driver.ts';
import { inboxConformance } from '../../testing/src/inbox-conformance.ts';
import { storeConformance } from '../../testing/src/store-conformance.ts';
import { callsOf, uncalledOf } from '../../../test/store/calls-of.ts';
import { explainStatements, fillTables, recordStatements } from './postgres-plans.ts';
import { POSTGRES, POSTGRES_URL, postgresStage, withParameters } from './postgres-stage.ts';

const TABLES = ['conversations', 'standings', 'passages', 'events', 'actors', 'entries'];

describe.skipIf(!POSTGRES_URL)(POSTGRES, () => {
  test('every statement of the driver reads a range of an index', async () => {
    const stage = postgresStage();
    await (await stage.open()).close();
    const called = new Set<string>();

    async function open(): Promise<StoreDriver> {
      await stage.sql(TABLES.map((table) => `DELETE FROM t.${table}`).join(';'));
      return callsOf(await stage.open({ url: withParameters(stage.url, { max: '4' }) }), called);
    }

    const stop = recordStatements();
    onTestFinished(() => void stop());
    for (const each of [...storeConformance(open), ...inboxConformance(open)]) await each.run();
    const driver = await open();
    await driver.check();
    await driver.close();
    const statements = stop();

    expect(uncalledOf(driver, called)).toEqual([]);
    // Statements at the start that read the catalog of the server are left out.
    const ofTables = statements.filter(({ text }) =>
      TABLES.some((table) => text.includes(`"${stage.schema}".${table}`)),
    );
    await fillTables(stage);
    expect(await explainStatements(POSTGRES_URL, ofTables)).toEqual([]);
    for (const kind of ['SELECT', 'INSERT INTO', 'UPDATE', 'DELETE FROM'])
      expect(ofTables.filter(({ text }) => text.includes(kind)).length, kind).toBeGreaterThan(2);
  });
});
