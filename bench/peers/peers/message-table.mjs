import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** The least that keeps a conversation: a row per message, on the disk before the answer is given. */
export function openMessageTable(dir) {
  const database = new DatabaseSync(join(dir, 'messages.db'));
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS messages (conversation TEXT, id INTEGER PRIMARY KEY AUTOINCREMENT, data TEXT);
    CREATE INDEX IF NOT EXISTS by_conversation ON messages (conversation, id)`);
  const insert = database.prepare('INSERT INTO messages (conversation, data) VALUES (?, ?)');
  const select = database.prepare('SELECT data FROM messages WHERE conversation = ? ORDER BY id');
  return {
    read: (conversation) => select.all(conversation).map(({ data }) => JSON.parse(data)),
    add(conversation, messages) {
      database.exec('BEGIN');
      for (const message of messages) insert.run(conversation, JSON.stringify(message));
      database.exec('COMMIT');
    },
    close: () => database.close(),
  };
}
