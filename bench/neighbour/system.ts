import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { dropDatabase, newDatabaseUrl } from '../distributed/bench-database.ts';
import type { ProcessTask, Serving } from './process.ts';
import { askUsage, type Usage } from './usage.ts';

export const MODES = ['embedded', 'distributed'] as const;
export type Mode = (typeof MODES)[number];

/** A fresh system of one mode: one process on SQLite, or an API and two workers on MongoDB and Redis. */
export interface System extends Serving {
  mode: Mode;
  /** Of the process that serves. */
  usage(): Promise<Usage>;
  /** True if a process has ended by itself. */
  hasFailed(): boolean;
  stop(): Promise<void>;
}

const WORKERS = 2;

export async function startSystem(mode: Mode, modelUrl: string): Promise<System> {
  return mode === 'embedded' ? await startEmbedded(modelUrl) : await startDistributed(modelUrl);
}

async function startEmbedded(modelUrl: string): Promise<System> {
  const data = mkdtempSync(join(tmpdir(), 'troupe-neighbour-'));
  const child = launch({ role: 'both', modelUrl, options: { data } });
  const serving = await serves(child);
  return systemOf('embedded', serving, [child], () =>
    Promise.resolve(rmSync(data, { recursive: true, force: true })),
  );
}

async function startDistributed(modelUrl: string): Promise<System> {
  const { url: mongodb } = newDatabaseUrl();
  const redis = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
  const prefix = `bench-${randomUUID()}`;
  const options = { mongodb, redis, prefix };
  const api = launch({ role: 'api', modelUrl, options });
  const serving = await serves(api);
  const workers = Array.from({ length: WORKERS }, () => launch({ role: 'worker', modelUrl, options }));
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  return systemOf('distributed', serving, [api, ...workers], async () => {
    await dropKeys(redis, prefix);
    await dropDatabase(mongodb);
  });
}

function launch(task: ProcessTask): ChildProcess {
  const script = fileURLToPath(new URL('./process.ts', import.meta.url));
  return fork(script, [JSON.stringify(task)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
}

async function serves(child: ChildProcess): Promise<Serving> {
  const failed = once(child, 'exit').then(() => Promise.reject(new Error('the server did not start')));
  const [serving] = (await Promise.race([once(child, 'message'), failed])) as [Serving];
  return serving;
}

function systemOf(
  mode: Mode,
  serving: Serving,
  children: readonly [ChildProcess, ...ChildProcess[]],
  clear: () => Promise<void>,
): System {
  return {
    ...serving,
    mode,
    usage: () => askUsage(children[0]),
    hasFailed: () => children.some(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null),
    async stop() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const exited = once(child, 'exit');
        // A process that noise has frozen receives no message.
        child.kill('SIGKILL');
        await exited;
      }
      await clear();
    },
  };
}

/** Cleans up: the server may not be ours. */
async function dropKeys(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url);
  for await (const keys of redis.scanStream({ match: `*${prefix}*`, count: 1_000 }))
    if ((keys as string[]).length > 0) await redis.unlink(keys as string[]);
  redis.disconnect();
}
