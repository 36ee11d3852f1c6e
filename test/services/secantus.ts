import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { aptInstall } from './apt-get.ts';
import type { Way } from './first-way.ts';
import { askMongo, mongoUrl } from './mongod.ts';
import { findOnPath, runCommand } from './run-command.ts';
import { say } from './say.ts';
import { flags, startServerProcess } from './server-process.ts';

/**
 * SecantusDB, a server that speaks the protocol of MongoDB and keeps its data in WiredTiger. Installed with pip into
 * a folder of the user's cache, for tests only: nothing of Troupe depends on it.
 */
const VERSION = '0.7.0b3';
const LAUNCHER = path.join(import.meta.dirname, 'secantus-launcher.py');
const PACKAGE_FOLDERS = ['/usr/bin'];
const PROBE_MS = 20_000;
const INSTALL_MS = 300_000;

export const secantusByPip: Way = {
  name: 'SecantusDB',
  async open() {
    const python = await findPython();
    if ('not' in python) return python;
    const library = await findLibrary(python);
    if ('not' in library) return library;
    const { port, pid, folder, stop } = await startServerProcess({
      name: 'secantus',
      command: python.command,
      args: ({ port, data }) => [
        LAUNCHER,
        ...flags({ host: '127.0.0.1', port, 'storage-path': data, 'log-level': 'WARNING' }),
        // As a standalone it keeps no oplog, so every write is a third cheaper. This is also the harder case: the
        // driver retries no write, and there are no change streams. It syncs its log for writes that ask for that (j:
        // true), so --sync-on-commit would add nothing.
        '--standalone',
        // Idle connections pin what they last read, and nothing newer can be evicted. With the default of 1 GB a
        // whole test run fills the cache, and then every operation waits forever.
        ...flags({ 'cache-size': '4G' }),
      ],
      env: { PYTHONPATH: library.folder },
      ask: askMongo,
    });
    return {
      url: mongoUrl(port),
      how: `SecantusDB ${library.version} (pip)`,
      process: { pid, folder },
      stop,
    };
  },
};

interface Python {
  command: string;
  /** Tag of its compiled modules, e.g. `cpython-311`: a library for another Python cannot be loaded. */
  tag: string;
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

async function findLibrary(python: Python): Promise<{ folder: string; version: string } | { not: string }> {
  const cache = path.join(process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'troupe');
  // The version known to work, and pip's own choice where that one is unavailable.
  const pinned = {
    spec: `SecantusDB==${VERSION}`,
    folder: path.join(cache, `secantus-${VERSION}-${python.tag}`),
  };
  const any = { spec: 'SecantusDB', folder: path.join(cache, `secantus-any-${python.tag}`) };
  let failure = '';
  const there = [pinned, any].find(({ folder }) => existsSync(folder));
  for (const { spec, folder } of there ? [there] : [pinned, any]) {
    const problem = there ? null : await install(python, spec, folder);
    if (!problem) return { folder, version: installedVersion(folder) };
    failure ||= problem;
  }
  return { not: failure };
}

/**
 * Installs into a folder beside it and renames that at the end, so an interrupted install is never used. Returns
 * null, or why it failed.
 */
async function install({ command }: Python, spec: string, folder: string): Promise<string | null> {
  const pip = ['-m', 'pip'];
  const hasPip = await runCommand(command, [...pip, '--version'], { timeoutMs: PROBE_MS });
  const failure = hasPip.ok ? null : await aptInstall(['python3-pip']);
  if (failure) return `python3 has no pip, and ${failure}`;

  mkdirSync(path.dirname(folder), { recursive: true });
  removeStale(`${folder}.partial-`);
  const partial = mkdtempSync(`${folder}.partial-`);
  try {
    say(`installing ${spec} with pip ...`);
    // Only from a wheel: a build takes longer than any test run.
    const args = ['install', '--quiet', '--only-binary', 'SecantusDB', '--target', partial, spec];
    const installed = await runCommand(command, [...pip, ...args], { timeoutMs: INSTALL_MS });
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
function removeStale(prefix: string): void {
  const cache = path.dirname(prefix);
  for (const name of readdirSync(cache)) {
    const left = path.join(cache, name);
    if (!left.startsWith(prefix)) continue;
    const age = Date.now() - (statSync(left, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > 2 * INSTALL_MS) rmSync(left, { recursive: true, force: true });
  }
}

function installedVersion(folder: string): string {
  const names = readdirSync(folder).map((name) => /^secantusdb-(.+)\.dist-info$/i.exec(name)?.[1]);
  return names.find((version) => version !== undefined) ?? 'of unknown version';
}
