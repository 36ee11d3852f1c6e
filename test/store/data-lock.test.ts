import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { lockDataDir, readServerInfo, writeServerInfo } from '../../src/store/sqlite/data-lock.ts';
import { startChild } from './child.ts';
import { tempDir } from './temp-dir.ts';

function holder(dir: string) {
  return startChild(`
    import { lockDataDir, writeServerInfo } from 'SRC/store/sqlite/data-lock.ts';
    const dir = ${JSON.stringify(dir)};
    try {
      const lock = lockDataDir(dir);
      writeServerInfo(dir, { pid: process.pid, url: 'http://127.0.0.1:1234' });
      console.log('locked');
      process.stdin.resume().on('end', () => { lock.release(); console.log('released'); });
    } catch (error) {
      console.log(error.code);
    }
  `);
}

function lockError(dir: string): TroupeError {
  try {
    lockDataDir(dir).release();
  } catch (error) {
    if (error instanceof TroupeError) return error;
  }
  return expect.unreachable('the lock was given');
}

test('a directory locked by another process is busy, and the error names the process', async () => {
  const dir = join(tempDir(), 'made', 'on the way');
  const child = holder(dir);
  expect(await child.line()).toBe('locked');
  const error = lockError(dir);
  expect(error.code).toBe('data_busy');
  expect(error.data).toMatchObject({ dir, url: 'http://127.0.0.1:1234', pid: expect.any(Number) });
  expect(error.message).toContain('http://127.0.0.1:1234');
  child.end();
  expect(await child.line()).toBe('released');
  lockDataDir(dir).release();
});

test('the lock of a killed process is free at once, and its address is removed', async () => {
  const dir = tempDir();
  const child = holder(dir);
  expect(await child.line()).toBe('locked');
  expect(lockError(dir).code).toBe('data_busy');
  await child.kill();
  expect(readServerInfo(dir)).not.toBeNull();
  using lock = lockDataDir(dir);
  expect(readServerInfo(dir)).toBeNull();
  expect(lock.paths.database).toBe(join(dir, 'troupe.db'));
  expect(await holder(dir).line()).toBe('data_busy');
});

test('one of five processes gets the directory', async () => {
  const dir = tempDir();
  const lines = await Promise.all(Array.from({ length: 5 }, () => holder(dir).line()));
  expect(lines.toSorted()).toEqual(['data_busy', 'data_busy', 'data_busy', 'data_busy', 'locked']);
});

test('a directory is busy for its own process too, until it is released; a second release does nothing', () => {
  const dir = tempDir();
  const lock = lockDataDir(dir);
  expect(lockError(dir).code).toBe('data_busy');
  lock.release();
  lock.release();
  lockDataDir(dir).release();
});

test('the address of the server is read back, and an invalid file has none', () => {
  const dir = tempDir();
  expect(readServerInfo(dir)).toBeNull();
  writeServerInfo(dir, { pid: 7, url: 'http://x' });
  expect(readServerInfo(dir)).toEqual({ pid: 7, url: 'http://x' });
  for (const text of ['', '{', '{}', 'null', '{"pid":"7","url":"x"}']) {
    writeFileSync(join(dir, 'server.json'), text);
    expect(readServerInfo(dir)).toBeNull();
  }
});

test('a path that is a file cannot be a data directory', () => {
  const file = join(tempDir(), 'file');
  writeFileSync(file, '');
  expect(lockError(file).code).toBe('data_unwritable');
  expect(existsSync(file)).toBe(true);
});
