import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TroupeError } from '../../errors.ts';

/** A package that only some users need, so that it is no dependency of ours. */
export interface Peer {
  dir: string;
  version: string;
  manifest: Record<string, unknown>;
}

/** A directory with a `node_modules` to look in first. */
export const PEERS_ENV = 'TROUPE_PEERS';

/**
 * An optional package, where Node would find it from here, or from the directory that commands are run in: Troupe may be
 * installed globally and the package in the project. Throws `provider_unusable` with what to install.
 */
export function findPeer(name: string, needs: { by: string; version: string }, env = process.env): Peer {
  const starts = [env[PEERS_ENV], process.cwd(), import.meta.dirname];
  for (const start of starts) {
    for (const dir of start === undefined ? [] : upward(start)) {
      const found = readPeer(join(dir, 'node_modules', name));
      if (found) return found;
    }
  }
  const message = `${needs.by} needs the package ${name}, which is not installed: npm install ${name}@${needs.version}`;
  throw new TroupeError('provider_unusable', message, { package: name });
}

function* upward(start: string): Generator<string> {
  let dir = start;
  yield dir;
  while (dir !== dirname(dir)) yield (dir = dirname(dir));
}

function readPeer(dir: string): Peer | null {
  const file = join(dir, 'package.json');
  if (!existsSync(file)) return null;
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  return { dir, version: String(manifest['version']), manifest };
}
