import path from 'node:path';
import type { Found } from './first-way.ts';
import { findOnPath, runCommand } from './run-command.ts';
import { say } from './say.ts';

/**
 * The services of docker-compose.yml. Starts all of them in one command: two concurrent `up` would both create the
 * network. Services that were running before keep running.
 */
const ROOT = path.dirname(path.dirname(import.meta.dirname));
const PROBE_MS = 5_000;
const UP_MS = 300_000;
const STOP_MS = 60_000;

const URLS = {
  mongodb: 'mongodb://127.0.0.1:27017/?directConnection=true',
  redis: 'redis://127.0.0.1:6379',
  postgres: 'postgres://postgres@127.0.0.1:5432/postgres',
};
export type ComposeService = keyof typeof URLS;

export interface Compose {
  open(service: ComposeService): Promise<Found | { not: string }>;
}

export function createCompose(wanted: readonly ComposeService[]): Compose {
  let upOnce: Promise<{ before: string[] } | { not: string }> | null = null;
  return {
    async open(service) {
      upOnce ??= up(wanted);
      const result = await upOnce;
      if ('not' in result) return result;
      return {
        url: URLS[service],
        how: 'docker compose',
        async stop() {
          if (!result.before.includes(service)) await compose(['stop', service], STOP_MS);
        },
      };
    },
  };
}

async function up(services: readonly ComposeService[]): Promise<{ before: string[] } | { not: string }> {
  if (!findOnPath('docker')) return { not: 'docker is not on PATH' };
  const engine = await runCommand('docker', ['info'], { timeoutMs: PROBE_MS });
  if (!engine.ok) return { not: 'no docker engine answers' };
  const plugin = await compose(['version'], PROBE_MS);
  if (!plugin.ok) return { not: 'this docker has no compose' };

  const running = await compose(['ps', '--services', '--status', 'running'], PROBE_MS);
  say(`starting ${services.join(' and ')} with docker compose ...`);
  const started = await compose(['up', '-d', '--wait', ...services], UP_MS);
  return started.ok ? { before: running.stdout.split('\n') } : { not: started.reason };
}

function compose(args: readonly string[], timeoutMs: number) {
  return runCommand('docker', ['compose', ...args], { timeoutMs, cwd: ROOT });
}
