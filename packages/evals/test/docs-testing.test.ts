import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { testingFiles } from '../../../scripts/testing-files.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const BIN = path.join(ROOT, 'node_modules/.bin');

/** Within the checkout, so that packages are found. */
function project(): string {
  const folder = mkdtempSync(path.join(ROOT, 'node_modules/.troupe-testing-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of testingFiles()) writeFileSync(path.join(folder, name), text);
  return folder;
}

function run(folder: string, command: string, args: readonly string[]): string {
  const { VITEST: _, ...env } = process.env;
  try {
    return execFileSync(path.join(BIN, command), args, {
      cwd: folder,
      env: { ...env, NO_COLOR: '1' },
      encoding: 'utf8',
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

test('the blocks of docs/how-to/testing.md run as they are written, as files of one folder', () => {
  const folder = project();
  const alias = {
    '@troupe/evals': path.join(ROOT, 'packages/evals/src/index.ts'),
    '@troupe/testing': path.join(ROOT, 'packages/testing/src/index.ts'),
    troupe: path.join(ROOT, 'src/index.ts'),
  };
  const include = ['**/*.{test,eval}.ts'];
  const config = {
    test: { include, isolate: false, maxWorkers: 1, testTimeout: 120_000 },
    resolve: { alias },
    root: folder,
  };
  writeFileSync(path.join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)};\n`);
  const printed = run(folder, 'vitest', [
    'run',
    '--config',
    path.join(folder, 'vitest.config.mjs'),
    '--exclude',
    'none',
  ]);
  const files = [...testingFiles().keys()].filter((name) => /\.(?:test|eval)\.ts$/.test(name));
  expect(files.length).toBeGreaterThan(5);
  expect(printed).toContain(`${files.length} passed`);
});

test('the first test of docs/how-to/testing.md has five lines', () => {
  const text = testingFiles().get('shipping.test.ts') ?? '';
  const [, body = ''] = /=> \{\n([^]*?)\n\}\);/.exec(text) ?? [];
  expect(body.split('\n').length).toBeLessThanOrEqual(5);
});

test('docs/reference/evals.md has a row for each matcher', async () => {
  const { MATCHERS } = await import('../src/matchers.ts');
  const text = readFileSync(path.join(ROOT, 'docs/reference/evals.md'), 'utf8');
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| `to'))
    .join('\n');
  expect(Object.keys(MATCHERS).filter((name) => !rows.includes(`\`${name}(`))).toEqual([]);
});
