import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tutorialSteps, writeStep } from '../scripts/check-tutorial.ts';

const ROOT = path.dirname(import.meta.dirname);

/** Ends where a step needs a server or a model: `scripts/check-pack.ts` follows the whole tutorial, with the packed package. */
test('the files of the tutorial work as they are written', () => {
  const folder = mkdtempSync(path.join(ROOT, 'node_modules/.troupe-tutorial-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const promised: string[] = [];
  for (const step of tutorialSteps()) {
    if (step.kind === 'last line') break;
    writeStep(folder, step);
    if (step.kind === 'printed') promised.push(...step.lines);
  }
  const alias = {
    '@troupe/evals': path.join(ROOT, 'packages/evals/src/index.ts'),
    '@troupe/testing': path.join(ROOT, 'packages/testing/src/index.ts'),
    troupe: path.join(ROOT, 'src/index.ts'),
  };
  const config = { test: { include: ['*.test.ts'] }, resolve: { alias }, root: folder };
  writeFileSync(path.join(folder, 'ask.test.ts'), ASK);
  writeFileSync(path.join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)};\n`);
  const { VITEST: _, ...env } = process.env;
  const args = [
    'run',
    '--config',
    path.join(folder, 'vitest.config.mjs'),
    '--exclude',
    'none',
    '--reporter=verbose',
  ];
  const printed = execFileSync(path.join(ROOT, 'node_modules/.bin/vitest'), args, {
    cwd: folder,
    env: { ...env, NO_COLOR: '1' },
    encoding: 'utf8',
  });
  expect(printed).toContain('3 passed');
  for (const line of promised.slice(-2)) expect(printed).toContain(line);
});

const ASK = `import { test } from 'vitest';
test('ask.ts ends', async () => {
  await import('./ask.ts');
});
`;
