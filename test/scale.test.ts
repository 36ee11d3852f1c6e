import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Amounts, measureDistributed, measureEmbedded, type Point } from '../bench/scale/measure.ts';
import { tables } from '../bench/scale/model.ts';
import { MEASURED } from '../bench/scale/points.ts';

const [mongodb, redis] = [process.env['MONGODB_URL'], process.env['REDIS_URL']];
/** Ids and numbers have other lengths in each run, and a worker looks at its queue now and then. */
const BYTES = 0.1;
const COMMANDS = 0.25;

test('docs/contributing/scale.md has the tables of the model', () => {
  const doc = readFileSync(path.join(import.meta.dirname, '../docs/contributing/scale.md'), 'utf8');
  expect(doc).toContain(tables());
});

function expectSame(found: Amounts, known: Amounts): void {
  const used = Object.entries(found).filter(([, { documents }]) => documents > 0);
  expect(used.map(([name]) => name).toSorted()).toEqual(Object.keys(known).toSorted());
  for (const [name, { documents, bytes, entries }] of used) {
    expect({ name, documents, entries }).toEqual({
      name,
      documents: known[name]?.documents,
      entries: known[name]?.entries,
    });
    expect(Math.abs(bytes / (known[name]?.bytes ?? 0) - 1), name).toBeLessThan(BYTES);
  }
}

function expectPoint(found: Point, known: Point): void {
  expectSame(found.perConversation, known.perConversation);
  expectSame(found.perTurn, known.perTurn);
  expect(found.commandsPerTurn).toBeGreaterThanOrEqual(known.commandsPerTurn * (1 - COMMANDS));
  expect(found.commandsPerTurn).toBeLessThanOrEqual(known.commandsPerTurn * (1 + COMMANDS));
}

test('what the model stands on is what a run leaves in SQLite', async () => {
  expectPoint(await measureEmbedded(), MEASURED.sqlite);
});

const missing = mongodb ? (redis ? null : 'Redis') : 'MongoDB';
const named = 'and in MongoDB and Redis';
test.skipIf(missing !== null)(missing === null ? named : `${named} (skipped: no ${missing})`, async () => {
  expectPoint(await measureDistributed({ mongodb: mongodb ?? '', redis: redis ?? '' }), MEASURED.mongodb);
});
