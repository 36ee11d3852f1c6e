import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './run-command.ts';
import { say } from './say.ts';

/**
 * Claude Code and Codex, which only provider tests need: some 800 MB, in a separate package. Without install scripts,
 * since their binaries are in the packages.
 */
const HOME = path.join(path.dirname(import.meta.dirname), 'clis');
const INSTALL_MS = 300_000;
const NPM_CI = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
/** The first place where providers look for them; see `src/providers/cli/find-peer.ts`. */
export const PEERS_ENV = 'TROUPE_PEERS';
const PROGRAMS = { 'Claude Code': '@anthropic-ai/claude-agent-sdk', Codex: '@openai/codex' };

export type Clis = { home: string } | { missing: string };

/** Installs the locked versions if they are missing. `TROUPE_TEST_CLIS=none` does not. */
export async function installClis(env: NodeJS.ProcessEnv = process.env): Promise<Clis> {
  if (env[PEERS_ENV]) return { home: env[PEERS_ENV] };
  if (isInstalled()) return { home: HOME };
  if (env['TROUPE_TEST_CLIS'] === 'none') return { missing: 'TROUPE_TEST_CLIS: none' };
  say('installing Claude Code and Codex with npm ...');
  const { ok, reason } = await runCommand('npm', NPM_CI, { cwd: HOME, timeoutMs: INSTALL_MS });
  return ok ? { home: HOME } : { missing: `npm ci: ${reason}` };
}

function isInstalled(): boolean {
  return Object.values(PROGRAMS).every((name) => {
    const locked = versionIn(path.join(HOME, 'package-lock.json'), name);
    return locked !== null && versionAt(HOME, name) === locked;
  });
}

export function describeClis(clis: Clis): string {
  if ('missing' in clis) return `CLIs: none (${clis.missing})`;
  const found = Object.entries(PROGRAMS).map(
    ([label, name]) => `${label}: ${name} ${versionAt(clis.home, name) ?? 'not there'}`,
  );
  return `CLIs: ${found.join(', ')}`;
}

function versionAt(home: string, name: string): string | null {
  const file = path.join(home, 'node_modules', name, 'package.json');
  if (!existsSync(file)) return null;
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function versionIn(lockfile: string, name: string): string | null {
  const { packages } = JSON.parse(readFileSync(lockfile, 'utf8')) as {
    packages: Record<string, { version?: string }>;
  };
  return packages[`node_modules/${name}`]?.version ?? null;
}
