import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findOnPath } from '../services/run-command.ts';
import { freePort } from '../services/server-process.ts';

/** A Redis on one port, without persistence, that a test may kill, pause and restart. */
export interface OwnRedis {
  url: string;
  start(): Promise<void>;
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
}

/** A connection of somebody else may have the port for a moment while the server is away. */
const MOST_STARTS = 100;
const BETWEEN_MS = 100;

export function redisServerPath(): string | null {
  return findOnPath('redis-server');
}

export async function startOwnRedis(onEnd: (end: () => Promise<void>) => void): Promise<OwnRedis> {
  const command = redisServerPath() ?? 'redis-server';
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-own-redis-'));
  const port = await freePort();
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    for (let left = MOST_STARTS; ; left -= 1) {
      const problem = await launch();
      if (problem === null) return;
      if (left === 0 || !problem.includes('Address already in use')) throw new Error(problem);
      await delay(BETWEEN_MS);
    }
  }

  /** Null once it is ready, else why it ended. */
  async function launch(): Promise<string | null> {
    const args = [
      '--port',
      `${port}`,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      folder,
    ];
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    server = child;
    return new Promise((resolve, reject) => {
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes('Ready to accept connections')) resolve(null);
      });
      child.on('error', reject);
      child.on('exit', () => resolve(`redis-server ended: ${said}`));
    });
  }

  async function kill(): Promise<void> {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const exit = once(server, 'exit');
    server.kill('SIGKILL');
    await exit;
  }

  await start();
  onEnd(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    start,
    kill,
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
  };
}
