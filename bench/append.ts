import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fill, messageText, ANA, ONE_AGENT, report, withTroupe } from './support.ts';

/**
 * Appends of messages without a recipient: many at once, and one after the other, each waiting for its own sync. The
 * latter runs next to a bare loop that inserts and syncs row by row.
 */
const EVENTS = 10_000;

await withTroupe(ONE_AGENT, async (troupe) => {
  await fill(troupe, 'warm-up', 2_000);
  const together = await rate(() => fill(troupe, 'together', EVENTS));
  const oneByOne = await rate(async () => {
    for (let index = 0; index < EVENTS; index++) {
      await troupe.send('one-by-one', { author: ANA, content: messageText(index), replyTo: 'none' as never });
    }
  });
  report({ together, oneByOne, bareOneByOne: await rate(bareInserts) });
});

async function bareInserts(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const database = new DatabaseSync(join(dir, 'bare.db'));
  database.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE log (seq INTEGER PRIMARY KEY, data TEXT)',
  );
  const insert = database.prepare('INSERT INTO log (data) VALUES (?)');
  for (let index = 0; index < EVENTS; index++) insert.run(messageText(index));
  database.close();
  rmSync(dir, { recursive: true });
}

async function rate(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (EVENTS * 1_000) / (performance.now() - start);
}
