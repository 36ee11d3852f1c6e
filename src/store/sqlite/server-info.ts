import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Lets other programs find the process that owns a data directory. A hint: only the lock proves that it runs. */
export interface ServerInfo {
  pid: number;
  url: string;
}

export function writeServerInfo(dir: string, info: ServerInfo): void {
  const path = pathIn(dir);
  // Renamed into place, so that a reader never sees half a file.
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(info)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

export function readServerInfo(dir: string): ServerInfo | null {
  try {
    const { pid, url } = JSON.parse(readFileSync(pathIn(dir), 'utf8')) as Partial<ServerInfo>;
    return typeof pid === 'number' && typeof url === 'string' ? { pid, url } : null;
  } catch {
    // Missing or unreadable: nothing is known.
    return null;
  }
}

export function removeServerInfo(dir: string): void {
  rmSync(pathIn(dir), { force: true });
}

function pathIn(dir: string): string {
  return join(dir, 'server.json');
}
