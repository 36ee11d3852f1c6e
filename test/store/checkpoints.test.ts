import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { getRow, openDatabase } from '../../src/store/sqlite/database.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { untilHolds } from '../support/until-holds.ts';
import { eventRow } from './event-row-of.ts';
import { tempDir } from './temp-dir.ts';

const MIB = 1024 * 1024;
const ROWS = 64;

/** Writes 4 MiB into the log; SQLite itself copies it only at 16 MiB. */
async function written(path: string) {
  const driver = await openSqliteDriver({ path });
  for (let each = 0; each < ROWS; each += 1)
    await driver.append([eventRow(`e${each}`, { content: 'x'.repeat(MIB / 16) })]);
  return driver;
}

describe('the write-ahead log of the embedded store', () => {
  test('is copied into the database after a few megabytes, while the store is open', async () => {
    const path = join(tempDir(), 'troupe.db');
    const driver = await written(path);
    await untilHolds(() => expect(statSync(path).size).toBeGreaterThan(MIB));
    expect(await driver.head({ tenant: 'acme', conversation: 'talk' })).toBe(ROWS);
    await driver.close();
  });

  test('is merged into the database and removed on close', async () => {
    const path = join(tempDir(), 'troupe.db');
    await (await written(path)).close();
    expect(existsSync(`${path}-wal`)).toBe(false);
    const again = await openSqliteDriver({ path });
    expect(await again.head({ tenant: 'acme', conversation: 'talk' })).toBe(ROWS);
    await again.close();
  });

  test('can be copied by another connection without clearing the caches', async () => {
    const path = join(tempDir(), 'troupe.db');
    const driver = await written(path);
    const [looking, copying] = [openDatabase(path), openDatabase(path)];
    const version = () =>
      getRow<{ data_version: number }>(looking.prepare('PRAGMA data_version'))?.data_version;
    const before = version();
    copying.exec('PRAGMA wal_checkpoint(PASSIVE)');
    expect(version()).toBe(before);
    looking.close();
    copying.close();
    await driver.close();
  });
});
