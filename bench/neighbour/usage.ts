import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What a process used since it was last asked. */
export interface Usage {
  /** Processor time per second: 1 is a whole core. */
  cores: number;
  /** Delay of its event loop, beyond the resolution of the measurement. */
  loopP50Ms: number;
  loopP99Ms: number;
}

/** A process that is frozen does not answer. */
const PATIENCE_MS = 5_000;
const RESOLUTION_MS = 1;
const NONE: Usage = { cores: Number.NaN, loopP50Ms: Number.NaN, loopP99Ms: Number.NaN };

/** Answers each message from the parent. */
export function tellUsage(): void {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  let since = { at: performance.now(), cpu: process.cpuUsage() };
  process.on('message', () => {
    const { user, system } = process.cpuUsage(since.cpu);
    const usage: Usage = {
      cores: (user + system) / 1_000 / (performance.now() - since.at),
      loopP50Ms: Math.max(0, delays.percentile(50) / 1e6 - RESOLUTION_MS),
      loopP99Ms: Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS),
    };
    delays.reset();
    since = { at: performance.now(), cpu: process.cpuUsage() };
    process.send?.(usage);
  });
}

export async function askUsage(child: ChildProcess): Promise<Usage> {
  const answered = once(child, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) });
  child.send('usage');
  const [usage] = (await answered.catch(() => [NONE])) as [Usage];
  return usage;
}
