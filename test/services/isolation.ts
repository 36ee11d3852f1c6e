import { findOnPath, runCommand } from './run-command.ts';

/**
 * A network namespace with only 127.0.0.1, so that nothing a test sends leaves this machine. Needs root on Linux, and
 * services that are started inside, not named by URLs.
 */
const INSIDE_ENV = 'TROUPE_TEST_NETWORK';
const PROBE_MS = 5_000;
const ENTER = 'ip link set lo up && exec "$0" "$@"';

export function isInside(env: NodeJS.ProcessEnv = process.env): boolean {
  return env[INSIDE_ENV] === 'loopback';
}

/** The reason why there can be none, in a few words; else null. */
export async function whyNotIsolated(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  if (env['MONGODB_URL'] || env['REDIS_URL'] || env['POSTGRES_URL']) return 'services are named by URLs';
  if (env[INSIDE_ENV] === 'open') return `${INSIDE_ENV}: open`;
  if (!findOnPath('unshare') || !findOnPath('ip', ['/usr/sbin', '/sbin'])) return 'no unshare and ip';
  const { ok, reason } = await runCommand('unshare', insideArgs('true', []), {
    timeoutMs: PROBE_MS,
    env: insideEnv(env),
  });
  return ok ? null : reason;
}

/** Arguments of `unshare` that run a command inside. */
export function insideArgs(command: string, args: readonly string[]): string[] {
  return ['--net', 'sh', '-c', ENTER, command, ...args];
}

export function insideEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, [INSIDE_ENV]: 'loopback', PATH: `${env['PATH'] ?? ''}:/usr/sbin:/sbin` };
}
