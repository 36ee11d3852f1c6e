import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { manifestOf } from './build-package.ts';
import { installTarball, ROOT, run } from './packed.ts';
import { testingFiles } from './testing-files.ts';

/**
 * Runs and type-checks the blocks of docs/how-to/testing.md in `app`, which has Troupe installed. Without `@troupe/evals` the command
 * names what installs it; with the tarballs of the package and of what it needs it compares scores. Returns what was done.
 */
export function checkTesting(app: string, ...tarballs: string[]): string {
  const compare = ['--no-install', 'troupe', 'eval', 'compare', 'scores.json', 'scores.json'];
  const missing = run(app, 'sh', ['-c', `npx ${compare.join(' ')} 2>&1 || true`]);
  if (!missing.includes('npm install @troupe/evals'))
    throw new Error(`without @troupe/evals it said ${JSON.stringify(missing)}`);
  const { vitest } = manifestOf('packages/evals')['peerDependencies'] as Record<string, string>;
  installTarball(app, ...tarballs, `vitest@${vitest}`);
  writeFileSync(path.join(app, 'scores.json'), JSON.stringify(SCORES));
  run(app, 'npx', compare);

  const folder = path.join(app, 'testing');
  mkdirSync(folder);
  const files = testingFiles();
  for (const [name, text] of files) writeFileSync(path.join(folder, name), text);
  const config = { test: { include: ['**/*.{test,eval}.ts'], isolate: false }, root: folder };
  const configFile = path.join(folder, 'vitest.config.mjs');
  writeFileSync(configFile, `export default ${JSON.stringify(config)};\n`);
  run(app, 'npx', ['--no-install', 'vitest', 'run', '--config', configFile]);
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2024', '--module', 'nodenext'];
  const types = [
    '--allowImportingTsExtensions',
    '--types',
    'node',
    '--typeRoots',
    path.join(ROOT, 'node_modules/@types'),
  ];
  run(folder, 'tsc', [...options, '--lib', 'es2024,esnext.disposable', ...types, ...files.keys()]);
  return `${files.size} files of docs/how-to/testing.md run and compile, and troupe eval asks for @troupe/evals where it is missing`;
}

const SCORES = { version: 1, repeats: 1, scenarios: [], judges: { calls: 0, tokens: 0, dollars: 0 } };
