import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findOnPath } from '../services/run-command.ts';
import { readRoot, ROOT, unknownIn } from './files.ts';

const UNITS = readdirSync(path.join(ROOT, 'deploy/systemd'));
/** Of `systemd-analyze security`: 0 is safest, 100 not hardened. */
const MOST_EXPOSED = 20;

const dir = mkdtempSync(path.join(tmpdir(), 'troupe-units-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('the units start commands that exist, and wait for as long as a process takes to end', () => {
  expect(UNITS).toEqual(['troupe-serve.service', 'troupe-worker@.service']);
  for (const unit of UNITS) {
    const text = readRoot(`deploy/systemd/${unit}`);
    const [, command = ''] = /^ExecStart=.*\/cli\.js (.*)$/m.exec(text) ?? [];
    expect(unknownIn(command.split(' '))).toEqual([]);
    expect(text).toMatch(/^Restart=always$/m);
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1])).toBeGreaterThan(10);
  }
});

const isThere = findOnPath('systemd-analyze') !== null;
const named = 'systemd accepts the units without a warning, and rates them as hardened';
test.skipIf(!isThere)(isThere ? named : `${named} (skipped: systemd-analyze is not on PATH)`, () => {
  const files = UNITS.map((unit) => {
    const file = path.join(dir, unit.replace('@.', '@1.'));
    writeFileSync(file, readRoot(`deploy/systemd/${unit}`));
    return file;
  });
  const analyze = (...args: string[]) =>
    execFileSync('sh', ['-c', 'systemd-analyze "$@" 2>&1', 'sh', ...args], { encoding: 'utf8' });
  expect(analyze('verify', ...files)).toBe('');
  for (const file of files) analyze('security', '--offline=yes', `--threshold=${MOST_EXPOSED}`, file);
});
