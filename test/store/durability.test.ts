import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, expect, test, vi } from 'vitest';
import { createTroupe } from '../../src/index.ts';
import { workplace } from '../cli/harness.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const COMPANY = {
  agents: [{ id: 'bo', provider: 'scripted', script: { rules: [{ reply: 'Noted.' }] } }],
} as const;

afterEach(() => vi.restoreAllMocks());

/** Whether a commit of a turn waits for the disk: SQLite is told so before it. */
async function syncs(durability?: 'disk' | 'process'): Promise<boolean> {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-durability-'));
  try {
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec');
    await using troupe = await createTroupe(COMPANY, { data, ...(durability && { durability }) });
    exec.mockClear();
    await troupe.send('c', { author: ANA, to: ['bo'], content: 'hello' });
    await troupe.idle();
    const { calls, contexts } = exec.mock;
    return calls.some(
      ([sql], index) =>
        sql === 'PRAGMA synchronous = FULL' &&
        ((contexts[index] as DatabaseSync).location() ?? '').startsWith(realpathSync(data)),
    );
  } finally {
    vi.restoreAllMocks();
    rmSync(data, { recursive: true, force: true });
  }
}

test('what is promised waits for the disk, unless only the end of the process has to be survived', async () => {
  expect(await syncs()).toBe(true);
  expect(await syncs('disk')).toBe(true);
  expect(await syncs('process')).toBe(false);
});

test('durability is refused where a database of its own decides, and when it is unknown', async () => {
  const urls = { mongodb: 'mongodb://127.0.0.1:1/x', redis: 'redis://127.0.0.1:1' };
  await expect(createTroupe(COMPANY, { ...urls, durability: 'process' })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('durability is a setting of the data directory'),
  });
  await expect(createTroupe(COMPANY, { durability: 'none' as never })).rejects.toMatchObject({
    code: 'config_invalid',
  });
});

test('a process that waits for no disk is killed, and has lost nothing of what it acknowledged', async () => {
  using place = workplace();
  const dev = await place.dev(['--durability', 'process']);
  const sent = await place.call(['send', 'c', 'hello', '--to', 'worker', '--wait']);
  expect(sent.code).toBe(0);
  dev.child.kill('SIGKILL');
  await dev.exited;
  const { code, out } = await place.call(['export', 'c']);
  expect([code, out]).toEqual([0, expect.stringContaining('work 1')]);
});
