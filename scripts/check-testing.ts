import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT, run } from './packed.ts';
import { testingFiles } from './testing-files.ts';

/** Runs and type-checks the blocks of docs/testing.md in `app`, which has Troupe and vitest installed. Returns what was done. */
export function checkTesting(app: string): string {
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
  return `${files.size} files of docs/testing.md run and compile`;
}
