import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { aptInstall } from './apt-get.ts';
import { findOnPath, runCommand } from './run-command.ts';
import { say } from './say.ts';
import { DOES_NOT_RUN } from './unusable.ts';

const PACKAGE_FOLDERS = ['/usr/bin'];
const PROBE_MS = 60_000;
const INSTALL_MS = 300_000;

/** A package of PyPI in a folder of the user's cache, for tests only: nothing of Troupe depends on it. */
export interface PythonLibrary {
  /** The interpreter. */
  command: string;
  /** For PYTHONPATH. */
  folder: string;
  version: string;
}

interface Wanted {
  /** Of the package. */
  name: string;
  /** What else of it is wanted, e.g. `[signing]`. */
  extras?: string;
  /** Begins the name of its folder. */
  label: string;
  /** The one known to work. Where it is unavailable, pip chooses. */
  version: string;
  /** Packages beside it that it does not bring itself. */
  beside?: readonly string[];
  /** A script that fails if it does not work here: compiled parts may need another processor. */
  trial?: string;
}

interface Python {
  command: string;
  /** Tag of its compiled modules, e.g. `cpython-311`: a library for another Python cannot be loaded. */
  tag: string;
}

/** Finds or installs it, with pip. */
export async function installPythonLibrary(wanted: Wanted): Promise<PythonLibrary | { not: string }> {
  const python = await findPython();
  if ('not' in python) return python;
  const library = await findLibrary(python, wanted);
  if ('not' in library) return library;
  const { command } = python;
  const { ok, reason } = await runCommand(command, ['-c', wanted.trial ?? ''], {
    timeoutMs: PROBE_MS,
    env: { ...process.env, PYTHONPATH: library.folder },
  });
  return ok ? { ...library, command } : { not: `${wanted.name} ${DOES_NOT_RUN}: ${reason}` };
}

/** An interpreter with pip. */
export async function findPip(): Promise<Python | { not: string }> {
  const python = await findPython();
  if ('not' in python) return python;
  const failure = await whyNoPip(python.command);
  return failure === null ? python : { not: failure };
}

async function whyNoPip(command: string): Promise<string | null> {
  const { ok } = await runCommand(command, ['-m', 'pip', '--version'], { timeoutMs: PROBE_MS });
  const failure = ok ? null : await aptInstall(['python3-pip']);
  return failure && `python3 has no pip, and ${failure}`;
}

async function findPython(): Promise<Python | { not: string }> {
  if (!findOnPath('python3', PACKAGE_FOLDERS)) {
    const failure = await aptInstall(['python3', 'python3-pip']);
    if (failure) return { not: `python3 is not on PATH, and ${failure}` };
  }
  const command = findOnPath('python3', PACKAGE_FOLDERS);
  if (!command) return { not: 'python3 is not on PATH' };
  const script = 'import sys; print(sys.implementation.cache_tag)';
  const { ok, stdout, reason } = await runCommand(command, ['-c', script], { timeoutMs: PROBE_MS });
  return ok ? { command, tag: stdout.trim() } : { not: `python3: ${reason}` };
}

async function findLibrary(
  python: Python,
  { name, extras = '', label, version, beside = [] }: Wanted,
): Promise<{ folder: string; version: string } | { not: string }> {
  const cache = path.join(process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'troupe');
  const pinned = {
    spec: `${name}${extras}==${version}`,
    folder: path.join(cache, `${label}-${version}-${python.tag}`),
  };
  const any = { spec: `${name}${extras}`, folder: path.join(cache, `${label}-any-${python.tag}`) };
  let failure = '';
  const there = [pinned, any].find(({ folder }) => existsSync(folder));
  for (const { spec, folder } of there ? [there] : [pinned, any]) {
    const problem = there ? null : await install(python, { specs: [spec, ...beside], name, folder });
    if (!problem) return { folder, version: installedVersion(folder, name) };
    failure ||= problem;
  }
  return { not: failure };
}

/**
 * Installs into a folder beside it and renames that at the end, so an interrupted install is never used. Returns
 * null, or why it failed.
 */
async function install(
  { command }: Python,
  { specs, name, folder }: { specs: readonly string[]; name: string; folder: string },
): Promise<string | null> {
  const failure = await whyNoPip(command);
  if (failure) return failure;

  mkdirSync(path.dirname(folder), { recursive: true });
  removeStale(`${folder}.partial-`, INSTALL_MS);
  const partial = mkdtempSync(`${folder}.partial-`);
  try {
    say(`installing ${specs.join(' and ')} with pip ...`);
    // Only from a wheel: a build takes longer than any test run.
    const args = ['-m', 'pip', 'install', '--quiet', '--only-binary', name, '--target', partial, ...specs];
    const installed = await runCommand(command, args, { timeoutMs: INSTALL_MS });
    if (!installed.ok) return `pip: ${installed.reason}`;
    renameSync(partial, folder);
    return null;
  } catch (error) {
    // Another run was faster; its install is just as good.
    if (existsSync(folder)) return null;
    throw error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/** Remains of interrupted installs; an install under way is younger than its time limit. */
export function removeStale(prefix: string, limitMs: number): void {
  const cache = path.dirname(prefix);
  for (const name of readdirSync(cache)) {
    const left = path.join(cache, name);
    if (!left.startsWith(prefix)) continue;
    const age = Date.now() - (statSync(left, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > 2 * limitMs) rmSync(left, { recursive: true, force: true });
  }
}

function installedVersion(folder: string, name: string): string {
  const begin = `${name.toLowerCase().replaceAll('-', '_')}-`;
  const info = readdirSync(folder).find(
    (each) => each.toLowerCase().startsWith(begin) && each.endsWith('.dist-info'),
  );
  return info?.slice(begin.length, -'.dist-info'.length) ?? 'of unknown version';
}
