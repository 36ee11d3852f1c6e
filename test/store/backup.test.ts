import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import type { StoreDriver } from '../../src/store/driver.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { forever } from '../support/engine-driver.ts';
import { asks, inOrder, modelOf, says } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { answered, only, sound } from '../support/steer-stage.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';
import { POSTGRES, POSTGRES_URL, postgresStage } from '../../packages/postgres/test/postgres-stage.ts';
import { tempDir } from './temp-dir.ts';

/** A store in use, and a copy of it as operators make one: docs/how-to/operations.md, *Backup and restore*. */
interface Place {
  driver: StoreDriver;
  /** Copies what is stored now, and opens the copy. */
  restore: () => Promise<StoreDriver>;
}

async function sqlite(): Promise<Place> {
  const [path, copy] = [join(tempDir(), 'troupe.db'), join(tempDir(), 'troupe.db')];
  return {
    driver: await openSqliteDriver({ path }),
    restore() {
      const beside = new DatabaseSync(path, { readOnly: true });
      beside.exec(`VACUUM INTO '${copy}'`);
      beside.close();
      return openSqliteDriver({ path: copy });
    },
  };
}

/** One collection after the other, without indexes: the least that a dump does. */
async function mongo(): Promise<Place> {
  const [from, to] = [mongoStage(), mongoStage()];
  return {
    driver: await from.open(),
    async restore() {
      for (const { name } of await from.db.listCollections({ type: 'collection' }).toArray()) {
        const documents = await from.db.collection(name).find().toArray();
        if (documents.length > 0) await to.db.collection(name).insertMany(documents);
      }
      return to.open();
    },
  };
}

/** Into a new schema: what pg_dump and pg_restore do with its rows. Generated columns are not copied. */
async function postgres(): Promise<Place> {
  const [from, to] = [postgresStage(), postgresStage()];
  return {
    driver: await from.open(),
    async restore() {
      const driver = await to.open();
      const tables = ['conversations', 'standings', 'passages', 'events', 'actors', 'entries'];
      for (const table of tables) {
        const columns = await to.sql<{ name: string }>(
          `SELECT quote_ident(column_name) AS name FROM information_schema.columns
           WHERE table_schema = $1 AND table_name = $2 AND is_generated = 'NEVER'`,
          [to.schema, table],
        );
        const names = columns.map(({ name }) => name).join(', ');
        await to.sql(`DELETE FROM t.${table}`);
        await to.sql(`INSERT INTO t.${table} (${names}) SELECT ${names} FROM "${from.schema}".${table}`);
      }
      return driver;
    },
  };
}

/** Not `quiet` alone, whose clock runs ahead of a server: it would give up in the middle of a turn. */
async function ended(stage: Awaited<ReturnType<typeof openStage>>, turns: number): Promise<void> {
  await until(`${turns} turns end`, async () => answered(await stage.events('c')).length === turns);
  await stage.quiet();
}

const stores: [name: string, open: () => Promise<Place>, isThere: boolean][] = [
  ['sqlite', sqlite, true],
  [MONGO, mongo, MONGODB_URL !== ''],
  [POSTGRES, postgres, POSTGRES_URL !== ''],
];

describe.each(stores)('%s', (_, open, isThere) => {
  test.skipIf(!isThere)(
    'a copy made during a turn runs on from there: nothing stored is lost, and no call runs twice',
    async () => {
      const { driver, restore } = await open();
      const noted: string[] = [];
      const note = defineTool({
        name: 'note',
        description: 'Writes into a book; twice would be wrong.',
        schema: z.object({ item: z.string() }),
        run: async ({ item }) => {
          noted.push(item);
          if (item === 'slow') await forever();
          return `noted ${item}`;
        },
      });
      const agent = { id: 'bo', tools: ['note'] };
      const step = asks(['note', { item: 'once' }]);
      const first = inOrder(says('good morning'), step, asks(['note', { item: 'slow' }]));
      const original = await openStage({ driver, tools: [note], agents: [{ ...agent, model: first }] });
      await original.say('c', 'hello', ['bo']);
      await ended(original, 1);
      await original.say('c', 'write', ['bo']);
      await until('the second call runs', () => noted.length === 2);

      const restored = await restore();
      const asked = modelOf(async function* () {
        yield* says('one is written, the other is not known');
      });
      const stage = await openStage({
        driver: restored,
        tools: [note],
        agents: [{ ...agent, model: asked }],
      });
      await until('the copy asks its model', () => asked.requests.length > 0);
      await ended(stage, 2);
      // The call under way may have had its effect: it is reported as lost, not run again.
      expect(noted).toEqual(['once', 'slow']);
      // The two answers before were stored, so no model is asked for them again.
      expect(asked.requests.map(({ trace }) => trace.step)).toEqual([3]);
      const events = await stage.events('c');
      expect(events.slice(0, 3)).toEqual((await original.events('c')).slice(0, 3));
      expect(only(events, 'tool.result').map(({ body }) => body.outcome)).toEqual(['done', 'lost']);
      expect(answered(events)).toEqual([
        ['done', ['hello']],
        ['done', ['write']],
      ]);
      await sound(stage);
      await stage.say('c', 'and now?', ['bo']);
      await ended(stage, 3);
      await restored.close();
    },
  );
});
