import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openScratch } from './scratch.ts';

const HERE = { TMPDIR: tmpdir() };

test('a run has a separate folder, which it removes', () => {
  const { folder, [Symbol.dispose]: end } = openScratch();
  writeFileSync(path.join(folder, 'left'), 'behind');
  end();
  expect(existsSync(folder)).toBe(false);
});

test('TMPDIR names the place of the folder', () => {
  using scratch = openScratch(HERE);
  expect(path.dirname(scratch.folder)).toBe(tmpdir());
});

test('the folder of a killed run is removed, that of a live run is not', () => {
  const dead = mkdtempSync(path.join(tmpdir(), 'troupe-test-999999999-'));
  const alive = mkdtempSync(path.join(tmpdir(), `troupe-test-${process.pid}-`));
  onTestFinished(() => rmSync(alive, { recursive: true }));
  openScratch(HERE)[Symbol.dispose]();
  expect([existsSync(dead), existsSync(alive)]).toEqual([false, true]);
});
