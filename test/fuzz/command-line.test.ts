import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

test.each([
  [['--help'], /^usage/],
  [['--seed', 'x'], /^--seed must be a whole number/],
  [['--bogus'], /bogus/],
  [['--inputs', '0'], /^--inputs must be a whole number from 1 on/],
  [['--only', 'nothing'], /^there is no target nothing/],
])('a wrong command line of the fuzzer shows the usage: %j', (args, message) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['fuzz/run.ts', ...args], {
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(message);
  expect(stderr).toContain('npm run fuzz -- [--inputs N]');
  expect(stderr).not.toContain('    at ');
});
