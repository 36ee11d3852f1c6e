import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { createStore } from '../../src/store/create-store.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { entryOf, logOf, rejectsWith } from '../../packages/testing/src/store-stage.ts';
import type { Author } from '../../src/events/index.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { tempDir } from './temp-dir.ts';

const LOG = logOf();
const LONG = 'x'.repeat(20_000);
const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };

test('a full store fails its check until a write succeeds, and warns once each time', async () => {
  const warnings: string[] = [];
  const store = createStore(
    await openSqliteDriver({
      path: path.join(tempDir(), 'troupe.db'),
      maxPages: 60,
      onWarning: (error) => void warnings.push(String(error)),
    }),
  );
  await store.check();
  const entry = (n: number) => entryOf(`e${n}`, { content: LONG });
  let stored = 0;
  const filled = (async () => {
    for (;;) {
      await store.append(LOG, [entry(stored)]);
      stored += 1;
    }
  })();
  await rejectsWith('store_unavailable', filled);
  expect(stored).toBeGreaterThan(0);
  for (let look = 0; look < 3; look += 1) {
    const error = await rejectsWith('store_unavailable', store.check());
    expect(error.message).toContain('the disk is full');
  }
  await store.deleteConversation(LOG);
  await store.check();
  expect(warnings).toMatchObject([
    expect.stringContaining('the disk is full'),
    expect.stringContaining('again'),
  ]);
  expect((await store.append(LOG, [entry(0)]))[0]?.kind).toBe('appended');
  await store.close();
});

/** A small disk, if this process may create one. */
function smallDisk(): string | null {
  const dir = path.join(tempDir(), 'disk');
  mkdirSync(dir);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', dir], { stdio: 'ignore' });
  } catch {
    return null;
  }
  onTestFinished(() => void execFileSync('umount', ['-l', dir], { stdio: 'ignore' }));
  return dir;
}

test('a full disk fails readiness by name, which returns with free space', async ({ skip }) => {
  const disk = smallDisk();
  if (disk === null) return skip('no right to mount a small disk');
  const counted: string[] = [];
  const metrics = {
    ...NO_METRICS,
    count: (name: string, labels: object) => void counted.push([name, ...Object.values(labels)].join(' ')),
  };
  const agents = [{ id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'yes' }] } }];
  const options = { data: path.join(disk, 'data'), onWarning: () => {}, metrics };
  await using troupe = await createTroupe({ agents }, options);
  const say = (content: string) => troupe.send('c', { author: ANA, content });
  await say('hello');
  const { bavail, bsize } = statfsSync(disk);
  const ballast = path.join(disk, 'ballast');
  writeFileSync(ballast, Buffer.alloc(Math.max(0, (bavail - 8) * bsize)));
  await rejectsWith(
    'store_unavailable',
    (async () => {
      for (let n = 0; n < 200; n += 1) await say(LONG);
    })(),
  );
  expect((await troupe.health()).store).toContain('the disk');
  expect(counted).toContain('store_errors store_unavailable');
  rmSync(ballast);
  expect((await troupe.health()).store).toBe('ok');
  await say('and again');
});
