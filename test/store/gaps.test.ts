import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ConversationId, EventId, TenantId } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { checkDatabase } from '../../src/store/sqlite/check-files.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { tempDir } from './temp-dir.ts';

test('a deleted event is reported with its conversation', async () => {
  const path = join(tempDir(), 'troupe.db');
  const store = createStore(await openSqliteDriver({ path }));
  const log = { tenant: 'default' as TenantId, conversation: 'plan' as ConversationId };
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  for (const id of ['e1', 'e2', 'e3'] as EventId[]) {
    await store.append(log, [
      { draft: { id, author, to: [], kind: 'message', body: { content: id } }, at: 1, tokens: 1 },
    ]);
  }
  await store.close();
  expect(checkDatabase(path)).toEqual([]);
  const database = new DatabaseSync(path);
  database.exec("DELETE FROM events WHERE id = 'e2'");
  database.close();
  expect(checkDatabase(path)).toEqual(['conversation plan lacks 1 event(s)']);
});
