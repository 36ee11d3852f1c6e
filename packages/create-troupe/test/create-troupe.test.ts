import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';

const SCRIPT = path.join(path.dirname(import.meta.dirname), 'create-troupe.js');

test('create-troupe runs "troupe init" of its own version with its arguments, and ends as that does', () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'create-troupe-'));
  try {
    const npm = path.join(dir, 'npm-cli.js');
    writeFileSync(npm, 'console.log(JSON.stringify(process.argv.slice(2))); process.exitCode = 3;');
    const { status, stdout } = spawnSync(process.execPath, [SCRIPT, 'my app', '--template', 'team'], {
      env: { ...process.env, npm_execpath: npm },
      encoding: 'utf8',
    });
    const exec = ['exec', '--yes', '--', 'troupe@^0.1.0', 'init', 'my app', '--template', 'team'];
    expect(JSON.parse(stdout)).toEqual(exec);
    expect(status).toBe(3);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
