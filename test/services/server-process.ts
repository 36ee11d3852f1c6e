import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lastLine } from './run-command.ts';

/**
 * A server process of our own, on a free port of this machine, with a separate folder.
 *
 * Owns the process, its folder, and the guard, a shell that waits on a pipe from this process.
 * 1. Nothing outlives this process: however it ends, SIGKILL included, the pipe closes; the guard then kills the
 *    server and removes the folder.
 * 2. Only processes started here are ended, by their process id.
 * 3. Server and guard are in separate process groups: Ctrl-C ends the tests first, and their services after them.
 * 4. Its data is thrown away, so the server is killed rather than asked to close its files.
 */
export interface ServerProcess {
  port: number;
  pid: number;
  folder: string;
  stop: () => Promise<void>;
}

interface ServerPlan {
  /** Part of the folder's name. */
  name: string;
  command: string;
  args: (at: { port: number; data: string }) => string[];
  env?: NodeJS.ProcessEnv;
  /** Default: a free one. */
  port?: number;
  /** Default 30 s. */
  readyWithinMs?: number;
  /** Resolves once the server has answered a request; may throw any number of times before. */
  ask: (port: number) => Promise<unknown>;
}

const READY_WITHIN_MS = 30_000;
const ASK_AGAIN_MS = 20;
/** Another process may take the free port before the server does. */
const ATTEMPTS = 3;
const GUARD = 'read -r _ || { kill -9 "$1"; sleep 1; rm -rf -- "$2"; } 2>/dev/null';

export async function startServerProcess(plan: ServerPlan): Promise<ServerProcess> {
  for (let attempt = 1; ; attempt += 1) {
    const started = await tryToStart(plan, plan.port ?? (await freePort()));
    if (!('exited' in started)) return started;
    if (attempt === ATTEMPTS) throw new Error(`${plan.command} ended at once: ${started.exited}`);
  }
}

/** `{ port: 1 }` as `--port 1`. */
export function flags(options: Record<string, string | number>): string[] {
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

async function tryToStart(plan: ServerPlan, port: number): Promise<ServerProcess | { exited: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), `troupe-${plan.name}-`));
  const data = path.join(folder, 'data');
  const logFile = path.join(folder, 'server.log');
  mkdirSync(data);
  const log = openSync(logFile, 'a');
  const server = spawn(plan.command, plan.args({ port, data }), {
    cwd: folder,
    env: { ...process.env, ...plan.env },
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  server.unref();
  let failure: string | null = null;
  const exit = new Promise<void>((resolve) => {
    server.on('error', (error) => {
      failure = error.message;
      resolve();
    });
    server.on('exit', (code, signal) => {
      // The last line of a program that was killed seldom says why.
      failure ??= signal ?? (lastLine(readFileSync(logFile, 'utf8')) || `exit code ${code}`);
      resolve();
    });
  });
  const pid = server.pid ?? 0;
  const dismissGuard = pid > 0 ? postGuard(pid, folder) : () => {};

  const stop = async () => {
    server.ref(); // Keeps this process alive while it waits.
    if (failure === null) server.kill('SIGKILL');
    await exit;
    rmSync(folder, { recursive: true, force: true });
    dismissGuard();
  };

  const { readyWithinMs = READY_WITHIN_MS } = plan;
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    try {
      await connectTo(port); // A client library is slow to notice that a closed port has opened.
      await plan.ask(port);
      // If another server had taken the port and answered, ours would have ended.
      if (failure === null) return { port, pid, folder, stop };
    } catch (error) {
      if (failure === null && Date.now() > deadline) {
        await stop();
        throw new Error(`${plan.command} did not answer within ${readyWithinMs / 1000} s`, {
          cause: error,
        });
      }
    }
    if (failure !== null) {
      await stop();
      return { exited: failure };
    }
    await delay(ASK_AGAIN_MS);
  }
}

function postGuard(pid: number, folder: string): () => void {
  const guard = spawn('sh', ['-c', GUARD, 'sh', String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  guard.on('error', () => {}); // No `sh`: the server still ends by `stop`.
  guard.stdin.on('error', () => {}); // The guard is gone and has nothing more to do.
  return () => guard.stdin.end('done\n');
}

function connectTo(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('error', reject);
    socket.on('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
