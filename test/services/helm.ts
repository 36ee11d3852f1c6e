import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { findOnPath, runCommand } from './run-command.ts';
import { say } from './say.ts';

/** The version known to work. A helm on the PATH is taken whatever its version. */
const VERSION = 'v3.22.0';
const CACHE = path.join(process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'troupe');
const FOLDER = path.join(CACHE, `helm-${VERSION}`);
/** It is compiled from source: minutes on two cores. */
const BUILD_MS = 1_200_000;

/** Helm on the PATH or in the user's cache. Does not install it: `installHelm` does, in `npm run test:real`. */
export function findHelm(): string | null {
  return findOnPath('helm', [FOLDER]);
}

/** Finds Helm, or builds it with Go into the user's cache, for tests only. */
export async function installHelm(): Promise<{ path: string } | { not: string }> {
  const found = findHelm();
  if (found !== null) return { path: found };
  const go = findOnPath('go', ['/usr/local/go/bin']);
  if (go === null) return { not: 'neither helm nor go is on PATH' };
  const partial = `${FOLDER}.partial-${process.pid}`;
  mkdirSync(partial, { recursive: true });
  try {
    say(`building helm ${VERSION} with go ...`);
    const args = ['install', `helm.sh/helm/v3/cmd/helm@${VERSION}`];
    const built = await runCommand(go, args, {
      timeoutMs: BUILD_MS,
      env: { ...process.env, GOBIN: partial, CGO_ENABLED: '0' },
    });
    if (!built.ok) return { not: `go install: ${built.reason}` };
    renameSync(partial, FOLDER);
    return { path: path.join(FOLDER, 'helm') };
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
