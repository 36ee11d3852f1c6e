import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { storeConformance } from '../../src/testing/store-conformance.ts';

const dir = mkdtempSync(join(tmpdir(), 'troupe-store-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let files = 0;
const suites = {
  'sqlite in memory': () => openSqliteDriver({ path: ':memory:' }),
  'sqlite in a file': () => openSqliteDriver({ path: join(dir, `${(files += 1)}.db`) }),
};

for (const [name, open] of Object.entries(suites)) {
  describe(name, () => {
    for (const each of storeConformance(open)) test(`${each.group}: ${each.name}`, () => each.run());
  });
}
