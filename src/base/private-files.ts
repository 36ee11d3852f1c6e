import { chmodSync, closeSync, existsSync, lstatSync, mkdirSync, openSync } from 'node:fs';

/**
 * Files and directories that only their user may open: 0600 and 0700, whatever the umask is. Windows has no such modes;
 * there these functions leave the rights as they are.
 */
const FILE = 0o600;
const DIR = 0o700;
const OF_OTHERS = 0o077;

/** Creates a directory and its missing parents. An existing one keeps its rights. Throws what `mkdir` throws. */
export function makePrivateDir(path: string): void {
  const made = mkdirSync(path, { recursive: true, mode: DIR });
  if (made !== undefined) allow(path, DIR);
}

/** Creates an empty file, or removes the rights of others from an existing one. Throws what `open` throws. */
export function makePrivateFile(path: string): void {
  const isNew = !existsSync(path);
  closeSync(openSync(path, 'a', FILE));
  if (isNew) allow(path, FILE);
  else closeToOthers(path);
}

/** Removes the rights of others from a path of this user. Returns whether others still have rights; false if it does not exist. */
export function closeToOthers(path: string): boolean {
  const { getuid } = process;
  if (getuid === undefined) return false;
  try {
    const found = lstatSync(path);
    // The rights of a link are those of its target, which the user chose.
    if (found.isSymbolicLink() || (found.mode & OF_OTHERS) === 0) return false;
    if (found.uid !== getuid.call(process)) return true;
    // The user's own rights stay: a file may be read-only for a reason.
    chmodSync(path, found.mode & ~OF_OTHERS & 0o777);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** Sets a mode. Some file systems refuse to: there the mount decides who may open files. */
function allow(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch {
    // The file system has no modes: the mount decides.
  }
}
