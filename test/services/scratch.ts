import { accessSync, chmodSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * The folder for all files of a test run, including its servers' files.
 *
 * It is in memory if there is enough, unless TMPDIR names a place: the disk of a shared machine stalls for seconds at
 * times, and so does every database on it. A killed process leaves the same in memory as on a disk.
 *
 * Owns the folder and its content. The next run removes the folder of a killed run.
 */
export interface Scratch extends Disposable {
  folder: string;
}

const MEMORY = '/dev/shm';
const ROOM_BYTES = 6 * 1024 ** 3;
const NAME = /^troupe-test-(\d+)-/;

export function openScratch(env: NodeJS.ProcessEnv = process.env): Scratch {
  const root = !env['TMPDIR'] && hasRoom(MEMORY) ? MEMORY : tmpdir();
  removeStale(root);
  const folder = mkdtempSync(path.join(root, `troupe-test-${process.pid}-`));
  // Some tests run commands as another user.
  chmodSync(folder, 0o711);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

function hasRoom(root: string): boolean {
  try {
    accessSync(root, constants.W_OK);
    const { bavail, bsize } = statfsSync(root);
    return Math.min(bavail * bsize, process.availableMemory()) > ROOM_BYTES;
  } catch {
    return false;
  }
}

function removeStale(root: string): void {
  for (const name of readdirSync(root)) {
    const pid = Number(NAME.exec(name)?.[1]);
    if (!(pid > 0) || isAlive(pid)) continue;
    try {
      rmSync(path.join(root, name), { recursive: true });
    } catch {
      // Another user's, or already removed by another run.
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
