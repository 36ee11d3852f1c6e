import { expect, test } from 'vitest';
import { createLogPages, createRecentEvents } from '../../src/actors/log/recent-events.ts';
import { createStore } from '../../src/store/create-store.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { entryOf, logOf } from '../../packages/testing/src/store-stage.ts';

test('pages that were just read are not those of a conversation that another process has deleted and begun again', async () => {
  const driver = await openSqliteDriver({ path: ':memory:' });
  const store = createStore(driver);
  const log = logOf();
  const write = (content: string, at: number) =>
    store.append(
      log,
      Array.from({ length: 600 }, (_, index) => entryOf(`e${index}`, { content, at })),
    );
  const pages = createLogPages(store, createRecentEvents(), createFakeClock());
  const first = async () => {
    const [event] = (await pages.readPage(log, { after: 0 })).events;
    return event?.kind === 'message' && event.body.content;
  };
  await write('a secret', 1_000);
  expect(await first()).toBe('a secret');
  await store.deleteConversation(log);
  await write('something else', 2_000);
  expect(await first()).toBe('something else');
  await driver.close();
});
