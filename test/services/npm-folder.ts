import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './run-command.ts';
import { say } from './say.ts';

const INSTALL_MS = 300_000;
/** Without install scripts, since binaries are in the packages. */
const NPM_CI = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];

/** A folder with a lockfile of its own, for packages that only some tests need. */
interface NpmFolder {
  home: string;
  packages: readonly string[];
  /** What is installed, in words. */
  label: string;
}

/** Installs the locked versions if one is missing. Returns null, or why it failed. */
export async function installNpmFolder({ home, packages, label }: NpmFolder): Promise<string | null> {
  if (hasPackages({ home, packages })) return null;
  say(`installing ${label} with npm ...`);
  const { ok, reason } = await runCommand('npm', NPM_CI, { cwd: home, timeoutMs: INSTALL_MS });
  return ok ? null : `npm ci: ${reason}`;
}

/** The installed version, null if there is none. */
export function versionAt(home: string, name: string): string | null {
  const file = path.join(home, 'node_modules', name, 'package.json');
  if (!existsSync(file)) return null;
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Whether all are installed in their locked versions. */
export function hasPackages({ home, packages }: Pick<NpmFolder, 'home' | 'packages'>): boolean {
  return packages.every((name) => isInstalled(home, name));
}

function isInstalled(home: string, name: string): boolean {
  const { packages } = JSON.parse(readFileSync(path.join(home, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string }>;
  };
  const locked = packages[`node_modules/${name}`]?.version;
  return locked !== undefined && versionAt(home, name) === locked;
}
