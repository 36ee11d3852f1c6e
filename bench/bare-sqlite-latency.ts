import { DatabaseSync } from 'node:sqlite';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageText, percentile, report } from './support.ts';

/**
 * The floor: a loop that stores the message, reads the whole history, and stores the reply, each durably, and nothing
 * else. Argument: number of earlier events in the conversation.
 */
const EVENTS = Number(process.argv[2]);
const dir = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
const database = new DatabaseSync(join(dir, 'bare.db'));
database.exec(
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE log (seq INTEGER PRIMARY KEY, data TEXT)',
);
const insert = database.prepare('INSERT INTO log (data) VALUES (?)');
const select = database.prepare('SELECT data FROM log ORDER BY seq');
database.exec('BEGIN');
for (let index = 0; index < EVENTS; index++)
  insert.run(JSON.stringify({ role: 'user', content: messageText(index) }));
database.exec('COMMIT');
const times: number[] = [];
for (let index = 0; index < 400; index++) {
  const start = performance.now();
  insert.run(JSON.stringify({ role: 'user', content: messageText(index) }));
  const history = select.all().map((row) => JSON.parse(String(row['data'])) as unknown);
  insert.run(JSON.stringify({ role: 'assistant', content: `Understood, and noted. ${history.length}` }));
  times.push(performance.now() - start);
}
database.close();
rmSync(dir, { recursive: true });
report({ p50: percentile(times, 0.5), p99: percentile(times, 0.99) });
