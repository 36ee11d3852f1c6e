import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { moduleOf } from '../test/types/mistakes.ts';

/**
 * What the types of a definition cost: seconds of processor time that a compiler takes for companies of 1 and 30 agents, and for the
 * same 30 without Troupe. Over the declarations, as users have them. `npm run bench:types`.
 */
const ROOT = path.dirname(import.meta.dirname);
const COMPILERS = ['typescript-5.6', 'typescript-5.9', 'typescript'];
const RUNS = 3;

const folder = mkdtempSync(path.join(ROOT, 'node_modules/.troupe-types-'));
try {
  const bin = (name: string) => path.join(ROOT, 'node_modules', name, 'bin/tsc');
  const declare = ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--declarationMap', 'false'];
  const to = ['--sourceMap', 'false', '--outDir', path.join(folder, 'troupe')];
  execFileSync(process.execPath, [bin('typescript'), ...declare, ...to], { cwd: ROOT, stdio: 'inherit' });
  const company = (size: number) =>
    moduleOf({}, { size, open: 'defineTroupe', index: './troupe/index.js' }).text;
  const without = `declare const own: <T>(given: T) => T;
const [createTroupe, defineTool, defineTroupe] = [own, own, own];`;
  const modules = {
    'without Troupe': company(30).replace(/import { createTroupe.*/, without),
    '1 agent': company(1),
    '30 agents': company(30),
  };
  for (const [at, text] of Object.values(modules).entries()) write(`${at}.ts`, text);
  for (const name of COMPILERS)
    for (const [at, what] of Object.keys(modules).entries()) {
      const config = write(`${at}.json`, JSON.stringify(settings([`${at}.ts`])));
      const seconds = Math.min(
        ...Array.from({ length: RUNS }, () => processorTime([bin(name), '-p', config])),
      );
      console.log(`${name.padEnd(15)} ${what.padEnd(15)} ${seconds.toFixed(2)} s`);
    }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function write(name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

function settings(files: readonly string[]) {
  const language = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
  };
  return { compilerOptions: { ...language, strict: true, skipLibCheck: true, noEmit: true }, files };
}

/** Of a program and what it starts, user and system, in seconds. */
function processorTime(args: readonly string[]): number {
  const timed = 'TIMEFORMAT="%U %S"; time "$@" >&2';
  const shell = spawnSync('bash', ['-c', timed, 'bash', process.execPath, ...args], { encoding: 'utf8' });
  const [user = NaN, system = NaN] = (shell.stderr.trim().split('\n').at(-1) ?? '').split(' ').map(Number);
  if (shell.status !== 0) throw new Error(shell.stderr);
  return user + system;
}
