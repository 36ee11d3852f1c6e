import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { startOwnRedis } from '../../rig/own-redis.ts';

const isThere = spawnSync('redis-server', ['--version']).status === 0;
const name =
  'the queue server can lose everything, or the end of its file, and is there again under the same address';

test.skipIf(!isThere)(isThere ? name : `${name} (skipped: no Redis)`, async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-rig-redis-'));
  const server = await startOwnRedis(dir);
  if (!server) return expect.fail('redis-server does not start');
  const client = new Redis(server.url);
  client.on('error', () => {}); // It is killed on purpose.
  onTestFinished(async () => {
    client.disconnect();
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  });

  await client.set('before', '1');
  await server.wipe();
  expect(await client.dbsize()).toBe(0);

  for (let i = 0; i < 1_000; i++) await client.set(`key-${i}`, 'x'.repeat(50));
  await server.cutFile(0.5);
  const left = await client.dbsize();
  expect(left).toBeGreaterThan(300);
  expect(left).toBeLessThan(700);
  expect(await client.get('key-0')).not.toBeNull();
  expect(await client.get('key-999')).toBeNull();
});
