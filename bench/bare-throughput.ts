import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageText, report } from './support.ts';

/** The floor of the throughput figure: two rows per turn, one durable transaction per 64 turns, and nothing else. */
const TURNS = 3_000;
const AT_ONCE = 64;
const dir = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
const database = new DatabaseSync(join(dir, 'bare.db'));
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE log (conversation TEXT, seq INTEGER, data TEXT, PRIMARY KEY (conversation, seq))`);
const insert = database.prepare(
  'INSERT INTO log SELECT ?1, coalesce(max(seq), 0) + 1, ?2 FROM log WHERE conversation = ?1',
);
const select = database.prepare('SELECT data FROM log WHERE conversation = ? ORDER BY seq');
const start = performance.now();
for (let from = 0; from < TURNS; from += AT_ONCE) {
  database.exec('BEGIN');
  for (let turn = from; turn < from + AT_ONCE; turn++) {
    const conversation = `c-${turn % 1_000}`;
    insert.run(conversation, JSON.stringify({ role: 'user', content: messageText(turn) }));
    const history = select.all(conversation).map((row) => JSON.parse(String(row['data'])) as unknown);
    insert.run(conversation, JSON.stringify({ role: 'assistant', content: `noted ${history.length}` }));
  }
  database.exec('COMMIT');
}
report({ turnsPerSecond: (TURNS * 1_000) / (performance.now() - start) });
database.close();
rmSync(dir, { recursive: true });
