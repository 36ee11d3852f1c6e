import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lastLine } from './run-command.ts';
import { freePort } from './server-process.ts';

/**
 * Servers that belong together and are killed and started again on purpose, each in a folder of its own.
 *
 * Owns the processes, their folder, and one guard as in `server-process.ts`: however this process ends, the guard kills
 * the servers by the ids in their files and removes the folder.
 */
export interface ServerGroup {
  folder: string;
  /** Starts one more server. */
  add: (plan: NodePlan) => Promise<ServerNode>;
  stop: () => Promise<void>;
}

export interface NodePlan {
  command: string;
  args: (at: NodePlace) => string[];
  /** Before the first start. */
  prepare?: (at: NodePlace) => Promise<void> | void;
  /** Resolves once the server answers; may throw any number of times before. */
  ask: (port: number) => Promise<unknown>;
}

export interface NodePlace {
  port: number;
  folder: string;
}

/** One server, which keeps its port and folder when it is started again. */
export interface ServerNode {
  port: number;
  start: () => Promise<void>;
  kill: () => Promise<void>;
  pause: () => void;
  resume: () => void;
}

const READY_WITHIN_MS = 60_000;
const ASK_AGAIN_MS = 50;
const GUARD =
  'read -r _ || { for f in "$1"/*/pid; do kill -9 "$(cat "$f")"; done; sleep 1; rm -rf -- "$1"; } 2>/dev/null';

/** `name` is part of the folder's. */
export function openServerGroup(name: string): ServerGroup {
  const folder = mkdtempSync(path.join(tmpdir(), `troupe-${name}-`));
  // A server that must not be root gets to its own folder.
  chmodSync(folder, 0o711);
  const guard = spawn('sh', ['-c', GUARD, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  guard.on('error', () => {}); // No `sh`: the servers still end by `stop`.
  guard.stdin.on('error', () => {});
  const nodes: ServerNode[] = [];
  return {
    folder,
    async add(plan) {
      const port = await freePort();
      const at = { port, folder: path.join(folder, String(port)) };
      mkdirSync(at.folder);
      await plan.prepare?.(at);
      const node = nodeOf(plan, at);
      nodes.push(node);
      await node.start();
      return node;
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
      guard.stdin.end('done\n');
    },
  };
}

function nodeOf({ command, args, ask }: NodePlan, at: NodePlace): ServerNode {
  const { port, folder } = at;
  let server: ChildProcess | null = null;
  let ended = Promise.resolve();

  async function start(): Promise<void> {
    const logFile = path.join(folder, 'log');
    const log = openSync(logFile, 'a');
    const child = spawn(command, args(at), { cwd: folder, stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    child.unref();
    writeFileSync(path.join(folder, 'pid'), `${child.pid ?? ''}`);
    let isOver = false;
    ended = new Promise((resolve) => {
      const over = () => {
        isOver = true;
        resolve();
      };
      child.on('exit', over);
      child.on('error', over);
    });
    server = child;
    await until(`${path.basename(command)} on port ${port}`, async () => {
      if (isOver) throw new Error(`${command} ended: ${lastLine(readFileSync(logFile, 'utf8'))}`);
      return ask(port).then(
        () => true,
        () => false,
      );
    });
  }

  async function kill(): Promise<void> {
    server?.ref(); // Keeps this process alive while it waits.
    server?.kill('SIGKILL');
    await ended;
  }

  return {
    port,
    start,
    kill,
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
  };
}

/** Throws if it does not hold within a minute. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${READY_WITHIN_MS / 1_000} s`);
    await delay(ASK_AGAIN_MS);
  }
}
