import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { findOnPath, runCommand } from '../../test/services/run-command.ts';
import { installPythonLibrary, type PythonLibrary } from '../../test/services/python-library.ts';
import { say } from '../../test/services/say.ts';

const HOME = path.join(import.meta.dirname, 'temporal');
const COMMAND = 'github.com/temporalio/cli/cmd/temporal';
/** As in `go.mod`. */
const VERSION = '1.5.1';
const BUILD_MS = 1_200_000;
const SDK = {
  name: 'temporalio',
  extras: '[openai-agents,opentelemetry]',
  label: 'temporal',
  version: '1.33.0',
  beside: ['openai-agents==0.19.4'],
} as const;

/** Temporal's SDK for Python, and its command, whose `server start-dev` is a server on SQLite. */
export type Temporal = PythonLibrary & { server: string };

/** Finds or installs both. Without a `temporal` on PATH it is built with Go, which takes some minutes. */
export async function installTemporal(): Promise<Temporal | { not: string }> {
  const server = await findServer();
  if ('not' in server) return server;
  const library = await installPythonLibrary(SDK);
  return 'not' in library ? library : { ...library, ...server };
}

async function findServer(): Promise<{ server: string } | { not: string }> {
  const found = findOnPath('temporal', []);
  if (found) return { server: found };
  const cache = path.join(process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'troupe');
  const built = path.join(cache, `temporal-cli-${VERSION}`);
  if (existsSync(built)) return { server: built };
  const go = findOnPath('go', ['/usr/local/go/bin']);
  if (!go) return { not: 'neither temporal nor go is on PATH' };
  say(`building temporal ${VERSION} with go, for some minutes ...`);
  mkdirSync(cache, { recursive: true });
  const partial = `${built}.partial-${process.pid}`;
  const build = ['build', '-buildvcs=false', '-o', partial, COMMAND];
  const { ok, reason } = await runCommand(go, build, { cwd: HOME, timeoutMs: BUILD_MS });
  if (!ok) return { not: `go build: ${reason}` };
  renameSync(partial, built);
  return { server: built };
}
