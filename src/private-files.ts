import { chmodSync, closeSync, existsSync, lstatSync, mkdirSync, openSync } from 'node:fs';

/**
 * Files and directories that only their user may open: 0600 and 0700, whatever the umask is. Windows has no such modes,
 * and what is made there has the rights of the user's profile: everything here changes nothing then.
 */
const FILE = 0o600;
const DIR = 0o700;
const OF_OTHERS = 0o077;

/** Makes it and what is missing above it. One that is there stays as it is. Throws what `mkdir` throws. */
export function makePrivateDir(path: string): void {
  const made = mkdirSync(path, { recursive: true, mode: DIR });
  if (made !== undefined) allow(path, DIR);
}

/** Makes an empty file where there is none, and closes one that is there. Throws what `open` throws. */
export function makePrivateFile(path: string): void {
  const isNew = !existsSync(path);
  closeSync(openSync(path, 'a', FILE));
  if (isNew) allow(path, FILE);
  else closeToOthers(path);
}

/** Takes the rights of others away where it is ours. Whether others have rights still. What is not there, they cannot open. */
export function closeToOthers(path: string): boolean {
  const { getuid } = process;
  if (getuid === undefined) return false;
  try {
    const found = lstatSync(path);
    // Rights of a link are those of its target, which somebody chose.
    if (found.isSymbolicLink() || (found.mode & OF_OTHERS) === 0) return false;
    if (found.uid !== getuid.call(process)) return true;
    // What its user may do with it stays: a file may be read-only for a reason.
    chmodSync(path, found.mode & ~OF_OTHERS & 0o777);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** Some file systems have no modes and refuse to set any: what they hold is as open as they were mounted. */
function allow(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch {
    // See above; it was made with this mode where there are any.
  }
}
