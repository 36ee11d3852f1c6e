import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ANA, fill, messageText, ONE_AGENT, report, turnWatcher, withTroupe } from './support.ts';

/** Growth of the data file and of memory per turn. Argument: number of earlier events in the conversation. */
const EVENTS = Number(process.argv[2]);
const TURNS = 60;

await withTroupe(ONE_AGENT, async (troupe, dir) => {
  const ended = turnWatcher(troupe);
  const turns = async (count: number) => {
    for (let index = 0; index < count; index++) {
      const done = ended('measured');
      await troupe.send('measured', { author: ANA, content: messageText(index) });
      await done;
    }
    await troupe.idle();
  };
  await fill(troupe, 'measured', EVENTS);
  await turns(200);
  const before = { bytes: usedBytes(dir), rss: rss() };
  await turns(TURNS);
  const after = { bytes: usedBytes(dir), rss: rss() };
  report({
    bytesPerTurn: (after.bytes - before.bytes) / TURNS,
    rssGrowthMb: (after.rss - before.rss) / 2 ** 20,
  });
});

/** Size of the file after a checkpoint. */
function usedBytes(dir: string): number {
  const path = join(dir, 'troupe.db');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  database.close();
  return statSync(path).size;
}

function rss(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
