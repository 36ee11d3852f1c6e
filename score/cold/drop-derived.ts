import path from 'node:path';
import { DEFAULT_TENANT } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { CONVERSATION } from './company.ts';

/** Usage: `node drop-derived.ts DIR`. Removes everything derived from the log of the conversation. */
const [data = ''] = process.argv.slice(2);
const store = createStore(await openSqliteDriver({ path: path.join(data, 'troupe.db') }));
const log = { tenant: DEFAULT_TENANT, conversation: CONVERSATION as never };
await store.removeDerived(log, await store.derivedKeys(log, ''));
await store.close();
