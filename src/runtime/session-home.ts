import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { closeToOthers, makePrivateDir } from '../private-files.ts';
import type { ProviderSettings } from '../providers/settings.ts';

/** Where the programs that remember conversations keep them. */
export interface SessionHome {
  dir: string;
  /** Of what lasts no longer than the process. */
  remove(): void;
}

const REMEMBERS: readonly ProviderSettings['provider'][] = ['claude-code', 'codex'];

/**
 * Beside the data in the embedded mode; in the distributed mode in the user's own state, so that a process that is
 * started again finds its sessions. Without data nothing lasts, and so do they not. Nothing is made where nobody needs it.
 */
export function sessionHome(
  agents: readonly Pick<ProviderSettings, 'provider'>[],
  {
    data,
    mongodb,
    prefix = 'troupe',
  }: { data?: string | undefined; mongodb?: string | undefined; prefix?: string | undefined },
): SessionHome {
  const keep = (dir: string): SessionHome => {
    makePrivateDir(dir);
    closeToOthers(dir);
    return { dir, remove: () => undefined };
  };
  if (!agents.some(({ provider }) => REMEMBERS.includes(provider)))
    return { dir: '', remove: () => undefined };
  if (mongodb !== undefined) return keep(join(stateDir(), 'troupe', prefix, 'sessions'));
  if (data !== undefined && data !== ':memory:') return keep(resolve(data, 'sessions'));
  const dir = mkdtempSync(join(tmpdir(), 'troupe-sessions-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

function stateDir(): string {
  return process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state');
}
