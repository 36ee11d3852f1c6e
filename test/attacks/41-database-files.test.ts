import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { expect } from 'vitest';
import { toTroupeError } from '../../src/base/errors.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { tempDir } from '../store/temp-dir.ts';
import { attack } from './attack.ts';
import { ANA, openStage } from './stage.ts';

const COMPANY = {
  agents: [{ id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'yes' }] } }],
};
const DATABASE = 'troupe.db';
const MARK = 'troupe.db-mark';
const FILES = [DATABASE, 'troupe.db-wal', MARK];
const PAGE = 4_096;
const CONVERSATIONS = ['a', 'b', 'c'];

const open = (data: string): Promise<Troupe> => createTroupe(COMPANY, { data, onWarning: () => {} });

async function talk(troupe: Troupe): Promise<void> {
  for (const conversation of CONVERSATIONS) {
    for (let n = 0; n < 3; n += 1) {
      await troupe.send(conversation, { author: ANA, to: ['bo'], content: `${n} ${'word '.repeat(200)}` });
      await troupe.idle();
    }
  }
}

/** The files as a killed process leaves them, in a separate directory. */
function copyOf(data: string): string {
  const copy = path.join(tempDir(), 'copy');
  mkdirSync(copy);
  for (const name of FILES) {
    if (statSync(path.join(data, name), { throwIfNoEntry: false }))
      copyFileSync(path.join(data, name), path.join(copy, name));
  }
  return copy;
}

async function refusalOf(data: string): Promise<string> {
  try {
    const troupe = await open(data);
    await troupe.close();
    return 'opened';
  } catch (error) {
    const { code, message } = toTroupeError(error);
    expect(message).toContain(path.join(data, DATABASE));
    return code;
  }
}

async function heads(troupe: Troupe): Promise<number[]> {
  return Promise.all(CONVERSATIONS.map(async (each) => (await troupe.events(each)).head));
}

attack(
  41,
  'incomplete files and those of another program are refused and left unchanged',
  async (refused) => {
    const data = path.join(tempDir(), 'data');
    await using troupe = await open(data);
    await talk(troupe);
    const before = await heads(troupe);
    const wal = statSync(path.join(data, 'troupe.db-wal')).size;
    {
      await using again = await open(copyOf(data));
      expect(await heads(again)).toEqual(before);
    }
    const damages: Record<string, (file: (name: string) => string) => void> = {
      'an empty database beside its log': (file) => truncateSync(file(DATABASE)),
      'no database beside its log': (file) => rmSync(file(DATABASE)),
      'a log that is gone': (file) => rmSync(file('troupe.db-wal')),
      'a log that is empty': (file) => truncateSync(file('troupe.db-wal')),
      'half a log': (file) => truncateSync(file('troupe.db-wal'), wal / 2),
      'nothing but a mark': (file) => [DATABASE, 'troupe.db-wal'].forEach((name) => rmSync(file(name))),
      // With its log beside it, nothing is lost.
      'a text': (file) => {
        rmSync(file('troupe.db-wal'));
        writeFileSync(file(DATABASE), 'hello '.repeat(2_000));
      },
      'a database of another program': (file) => {
        for (const name of FILES) rmSync(file(name));
        const other = new DatabaseSync(file(DATABASE));
        other.exec('CREATE TABLE photos (name TEXT)');
        other.close();
      },
    };
    for (const [name, damage] of Object.entries(damages)) {
      const copy = copyOf(data);
      const file = (each: string) => path.join(copy, each);
      damage(file);
      const bytes = statSync(file(DATABASE), { throwIfNoEntry: false }) && readFileSync(file(DATABASE));
      expect([name, await refusalOf(copy)]).toEqual([name, 'store_corrupt']);
      if (name.includes('empty') || name.includes('other'))
        expect(readFileSync(file(DATABASE)).equals(bytes ?? Buffer.alloc(0))).toBe(true);
      refused('store_corrupt before any write');
    }

    // Wherever the log is truncated: no acknowledged event is missing, or the loss is reported.
    await fc.assert(
      fc.asyncProperty(fc.nat(wal), async (length) => {
        const copy = copyOf(data);
        truncateSync(path.join(copy, 'troupe.db-wal'), length);
        const refusal = await refusalOf(copy);
        if (refusal !== 'opened') {
          expect(refusal).toBe('store_corrupt');
          return;
        }
        await using again = await open(copy);
        expect(await heads(again)).toEqual(before);
      }),
      { numRuns: 20 },
    );
  },
);

attack(41, 'flipped bits are refused at the start, or end readiness when they are read', async (refused) => {
  const data = path.join(tempDir(), 'data');
  {
    await using troupe = await open(data);
    await talk(troupe);
  }
  const size = statSync(path.join(data, DATABASE)).size;
  // Anywhere after the file's header, or in a page's type byte: SQLite reads these only on demand.
  const anywhere = fc.integer({ min: 100, max: size - 1 });
  const inHeaders = fc
    .tuple(fc.integer({ min: 1, max: size / PAGE - 1 }), fc.nat(7))
    .map(([page, offset]) => page * PAGE + offset);
  const flips = fc.array(fc.record({ at: fc.oneof(anywhere, inHeaders), bit: fc.nat(7) }), {
    minLength: 1,
    maxLength: 2_000,
  });
  // A renamed column: no page is damaged, but no statement fits.
  const renamed = copyOf(data);
  const schema = readFileSync(path.join(renamed, DATABASE));
  // A page that was split may still have the old text.
  for (let at = 0; (at = schema.indexOf('CREATE TABLE events', at + 1)) > 0;)
    schema[schema.indexOf('num INTEGER PRIMARY KEY', at)] = 'm'.charCodeAt(0);
  writeFileSync(path.join(renamed, DATABASE), schema);
  expect(await refusalOf(renamed)).toBe('store_corrupt');
  let met = 0;
  await fc.assert(
    fc.asyncProperty(flips, async (flipped) => {
      const copy = copyOf(data);
      const bytes = readFileSync(path.join(copy, DATABASE));
      for (const { at, bit } of flipped) bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
      writeFileSync(path.join(copy, DATABASE), bytes);
      const refusal = await refusalOf(copy);
      if (refusal !== 'opened') {
        met += 1;
        expect(['store_corrupt', 'store_newer']).toContain(refusal);
        return;
      }
      await using troupe = await open(copy);
      for (const conversation of CONVERSATIONS) {
        const code = await troupe.events(conversation, { limit: 1_000 }).then(
          () => 'read',
          (error: unknown) => toTroupeError(error).code,
        );
        if (code !== 'read') expect((await troupe.health()).store).toContain(DATABASE);
      }
    }),
    { numRuns: 60 },
  );
  expect(met).toBeGreaterThan(0);
  refused('store_corrupt at the start');
});

attack(
  41,
  'while the store takes no writes, readiness names the reason, and returns with them',
  async (refused) => {
    const data = path.join(tempDir(), 'data');
    await using stage = await openStage({ open: createTroupe, troupe: { data } });
    const ready = async () => {
      const { status, body } = await stage.ask('/readyz');
      return `${status} ${String(body['store'])}`;
    };
    await stage.say('c', 'hello', { to: ['bo'] });
    expect(await ready()).toBe('200 ok');
    const other = new DatabaseSync(path.join(data, DATABASE));
    other.exec('BEGIN IMMEDIATE');
    const answer = await stage.ask('/api/conversations/c/events', { body: { author: ANA, content: 'lost' } });
    expect(answer.status).toBe(503);
    await expect.poll(ready).toMatch(/^503 .*troupe\.db/);
    refused('503 with the name of the store');
    other.exec('ROLLBACK');
    other.close();
    // Readiness returns without any write.
    await expect.poll(ready).toBe('200 ok');
    expect((await stage.say('c', 'and again')).status).toBe(201);
    expect(stage.warnings.join('\n')).toContain('can be written again');
  },
);
