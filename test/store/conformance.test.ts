import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { inboxConformance } from '../../packages/testing/src/inbox-conformance.ts';
import { storeConformance } from '../../packages/testing/src/store-conformance.ts';
import { MONGO, MONGODB_URL, openMongoOnce } from './mongo-stage.ts';
import {
  dropSpareSchemas,
  openPostgresOnce,
  POSTGRES,
  POSTGRES_URL,
} from '../../packages/postgres/test/postgres-stage.ts';

const dir = mkdtempSync(join(tmpdir(), 'troupe-store-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
afterAll(dropSpareSchemas);

let files = 0;
const suites: Record<string, () => Promise<StoreDriver>> = {
  'documents in memory': async () =>
    createDocumentDriver(createMemoryDocuments(), {
      random: Math.random,
      sleep: (ms) => systemClock.sleep(ms),
    }),
  'sqlite in memory': () => openSqliteDriver({ path: ':memory:' }),
  'sqlite in a file': () => openSqliteDriver({ path: join(dir, `${(files += 1)}.db`) }),
};

if (MONGODB_URL) Object.assign(suites, { mongo: openMongoOnce });
else describe.skip(MONGO, () => test('the suite', () => {}));
if (POSTGRES_URL) Object.assign(suites, { postgres: openPostgresOnce });
else describe.skip(POSTGRES, () => test('the suite', () => {}));

for (const [name, open] of Object.entries(suites)) {
  describe(name, () => {
    for (const each of [...storeConformance(open), ...inboxConformance(open)])
      test(`${each.group}: ${each.name}`, () => each.run());
  });
}
