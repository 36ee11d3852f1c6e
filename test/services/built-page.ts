import path from 'node:path';
import { runCommand } from './run-command.ts';

const ROOT = path.dirname(path.dirname(import.meta.dirname));
const BUILD_MS = 120_000;

/** Builds the page for the tests: an earlier build may be of other code. Returns null, or why it cannot. */
export async function buildPage(): Promise<string | null> {
  const { ok, reason } = await runCommand('npm', ['run', '-s', 'build:web'], {
    cwd: ROOT,
    timeoutMs: BUILD_MS,
  });
  return ok ? null : reason;
}
