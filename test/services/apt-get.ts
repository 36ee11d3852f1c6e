import { existsSync } from 'node:fs';
import { findOnPath, runCommand } from './run-command.ts';
import { say } from './say.ts';

const INSTALL_MS = 240_000;
const UPDATE_MS = 120_000;
const ENV = {
  ...process.env,
  DEBIAN_FRONTEND: 'noninteractive',
  // A server's package would start it as a system service. Runlevel 1 prevents that. If it starts all the same, that
  // service is neither used nor stopped, because it is not ours.
  RUNLEVEL: '1',
};

/** One apt-get at a time: two would compete for the lock of dpkg. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Returns null once the packages are installed, else the reason. With `lists: 'old'` it uses the present package
 * lists only.
 */
export function aptInstall(
  packages: readonly string[],
  { lists = 'new' }: { lists?: 'old' | 'new' } = {},
): Promise<string | null> {
  const mine = last.then(() => install(packages, lists));
  last = mine;
  return mine;
}

async function install(packages: readonly string[], lists: 'old' | 'new'): Promise<string | null> {
  const refusal = whyNot();
  if (refusal) return refusal;
  say(`installing ${packages.join(' ')} with apt-get ...`);
  const args = ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=60', ...packages];
  const first = await runCommand('apt-get', args, { timeoutMs: INSTALL_MS, env: ENV });
  if (first.ok) return null;
  if (lists === 'old') return `apt-get: ${first.reason}`;
  // A fresh image has no package lists; an old one lists packages that no longer exist.
  say('updating the package lists with apt-get ...');
  await runCommand('apt-get', ['update'], { timeoutMs: UPDATE_MS, env: ENV });
  const second = await runCommand('apt-get', args, { timeoutMs: INSTALL_MS, env: ENV });
  return second.ok ? null : `apt-get: ${second.reason}`;
}

function whyNot(): string | null {
  if (!existsSync('/etc/debian_version') || !findOnPath('apt-get')) return 'not a Debian with apt-get';
  if (process.getuid?.() !== 0) return 'apt-get needs root';
  return null;
}
