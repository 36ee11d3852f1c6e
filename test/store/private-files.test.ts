import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Author } from '../../src/events/index.ts';
import { createTroupe, type TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { tempDir } from './temp-dir.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const COMPANY = {
  agents: [{ id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'yes' }] } }],
};
const POSIX = process.getuid !== undefined;

let before = 0;
/** A umask that grants all rights, unless a program restricts them. */
beforeEach(() => (before = process.umask(0)));
afterEach(() => void process.umask(before));

/** `mode name` of the directory and of all its files. */
function modes(dir: string): string[] {
  const of = (name: string) => `${(statSync(path.join(dir, name)).mode & 0o777).toString(8)} ${name}`;
  return ['.', ...readdirSync(dir, { recursive: true, encoding: 'utf8' }).sort()].map(of);
}

function isPrivate(line: string): boolean {
  return /^[67]00 /.test(line);
}

async function oneTurn(data: string, options: TroupeOptions = {}): Promise<string[]> {
  await using troupe = await createTroupe(COMPANY, { data, ...options });
  await troupe.send('c', { author: ANA, to: ['bo'], content: 'hello' });
  await troupe.idle();
  return modes(data);
}

test.runIf(POSIX)('what is written is for its user alone, whatever the umask is', async () => {
  const above = path.join(tempDir(), 'new');
  const data = path.join(above, 'data');
  const record = path.join(tempDir(), 'calls.jsonl');
  const atWork = await oneTurn(data, { record });
  expect(atWork.map((line) => line.slice(4))).toEqual(
    expect.arrayContaining(['.', 'troupe.db', 'troupe.db-wal', 'troupe.db-shm', 'lock.db']),
  );
  expect(atWork.filter((line) => !isPrivate(line))).toEqual([]);
  expect(modes(above).slice(0, 1)).toEqual(['700 .']);
  expect(statSync(record).mode & 0o777).toBe(0o600);
});

test.runIf(POSIX)('what was open to others before is closed to them', async () => {
  const data = path.join(tempDir(), 'data');
  await oneTurn(data);
  chmodSync(data, 0o755);
  for (const name of readdirSync(data)) chmodSync(path.join(data, name), 0o644);
  const record = path.join(tempDir(), 'calls.jsonl');
  writeFileSync(record, '', { mode: 0o644 });
  expect((await oneTurn(data, { record })).filter((line) => !isPrivate(line))).toEqual([]);
  expect(statSync(record).mode & 0o777).toBe(0o600);
});

test.runIf(POSIX)(
  'a directory with other things in it stays as it is, and what is ours in it is closed',
  async () => {
    const data = path.join(tempDir(), 'shared');
    mkdirSync(path.join(data, 'photos'), { recursive: true, mode: 0o755 });
    writeFileSync(path.join(data, 'letter.txt'), 'dear ana', { mode: 0o644 });
    chmodSync(data, 0o755);
    const found = await oneTurn(data);
    expect(found.filter((line) => !isPrivate(line)).sort()).toEqual(
      ['755 .', '755 photos', '644 letter.txt'].sort(),
    );
  },
);

test.runIf(POSIX && process.getuid?.() === 0)('what belongs to another user is told of', async () => {
  const { chownSync } = await import('node:fs');
  const data = path.join(tempDir(), 'data');
  await oneTurn(data);
  const database = path.join(data, 'troupe.db');
  chmodSync(database, 0o644);
  chownSync(database, 12_345, 12_345);
  const warnings: string[] = [];
  await oneTurn(data, { onWarning: (error) => void warnings.push(String(error)) });
  expect(existsSync(database)).toBe(true);
  expect(warnings.join('\n')).toContain('troupe.db');
  expect(warnings.join('\n')).toContain('another user');
});
