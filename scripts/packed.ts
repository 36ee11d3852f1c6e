import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.dirname(import.meta.dirname);
/** The Node of this checkout comes first in the path. */
export const ENV = {
  ...process.env,
  PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${process.env['PATH']}`,
};

/** Packs Troupe into `folder` as `npm publish` would. Returns the path of the tarball. */
export function packTroupe(folder: string): string {
  run(ROOT, 'npm', ['pack', '--pack-destination', folder]);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  if (!tarball) throw new Error('npm pack left no tarball');
  return path.join(folder, tarball);
}

/** Installs packages into `app` without running their scripts. An `app` without a package.json gets one. */
export function installTarball(app: string, ...packages: string[]): void {
  const file = path.join(app, 'package.json');
  if (!existsSync(file)) writeFileSync(file, JSON.stringify({ name: 'app', private: true, type: 'module' }));
  run(app, 'npm', [
    'install',
    '--ignore-scripts',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    ...packages,
  ]);
}

/** Returns stdout; throws with all output on failure. */
export function run(cwd: string, command: string, args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env: ENV, encoding: 'utf8' });
  if (error) throw error;
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with code ${status}\n${stdout}\n${stderr}`);
}
