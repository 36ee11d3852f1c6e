import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface LoadServer {
  url: string;
  keys: { load: string; other: string; operator: string };
  /** Bytes after a garbage collection, and what the process has used of the CPU. */
  memory(): Promise<{ rss: number; heapUsed: number; external: number; cpuMs: number }>;
  stop(): Promise<void>;
}

export async function startServer(settings: object = {}): Promise<LoadServer> {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-load-'));
  const path = fileURLToPath(new URL('./server.ts', import.meta.url));
  const child = fork(path, [dir, JSON.stringify(settings)], { execArgv: ['--expose-gc'] });
  const [ready] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the server did not start'))),
  ])) as [Pick<LoadServer, 'url' | 'keys'>];
  return {
    ...ready,
    async memory() {
      const answer = once(child, 'message');
      child.send('memory');
      return ((await answer) as [Awaited<ReturnType<LoadServer['memory']>>])[0];
    },
    async stop() {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
