import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Outcome } from './schedule.ts';
import type { Report, Task } from './worker.ts';

export interface PoolResult {
  figures: Record<string, number>;
  longestMs: number;
  /** The first violation found. */
  violation: Outcome | null;
  problem: string | null;
}

export interface PoolOptions {
  tasks: Task[];
  jobs: number;
  mutant?: string;
  /** By `performance.now()`: no task starts later. */
  until?: number;
  onProgress?: (schedules: number) => void;
  /** A task that is silent for longer hangs, ms; default 240 s, 20 s with a mutant, of which some are expected to hang. */
  silenceMs?: number;
}

/** A schedule that takes longer is in an endless loop within one step, which only another process can notice. */
const SILENCE_MS = 240_000;
const MUTANT_SILENCE_MS = 20_000;
/** A process that was killed in a schedule keeps what it waited for, some 600 kB: its worker is replaced in time. */
const MOST_TASKS = 20;
/** Schedules create much garbage that lives for one step. */
const YOUNG_SPACE = ['--min-semi-space-size=16', '--max-semi-space-size=16'];
const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url));

/** Runs the tasks in child processes, until the first violation. */
export async function runPool(options: PoolOptions): Promise<PoolResult> {
  const result: PoolResult = { figures: {}, longestMs: 0, violation: null, problem: null };
  const tasks = [...options.tasks];
  const children = Array.from({ length: Math.min(options.jobs, tasks.length) }, () =>
    serve(options, tasks, result),
  );
  await Promise.all(children);
  return result;
}

function serve(options: PoolOptions, tasks: Task[], result: PoolResult): Promise<void> {
  const { mutant = '', until = Infinity, onProgress } = options;
  const { silenceMs = mutant === '' ? SILENCE_MS : MUTANT_SILENCE_MS } = options;
  const child = fork(WORKER, [mutant], { execArgv: YOUNG_SPACE });
  const { promise, resolve } = Promise.withResolvers<void>();
  let current: Task | undefined;
  let served = 0;
  let watchdog: NodeJS.Timeout | undefined;

  function proceed(): void {
    clearTimeout(watchdog);
    const isOver = result.violation || result.problem !== null || performance.now() > until;
    if (!isOver && served === MOST_TASKS) return replace();
    served += 1;
    current = isOver ? undefined : tasks.shift();
    if (!current) return end();
    child.send(current);
    watchdog = setTimeout(() => fail(`HANG a schedule in ${describe(current)} never ended`), silenceMs);
  }

  function fail(problem: string): void {
    result.problem ??= problem;
    end();
  }

  function replace(): void {
    current = undefined;
    stop(child);
    resolve(serve(options, tasks, result));
  }

  function end(): void {
    clearTimeout(watchdog);
    stop(child);
    resolve();
  }

  child.on('message', (report: Report) => {
    if (report.type === 'stale') fail(report.problem);
    else if (report.type === 'violation') result.violation ??= report.outcome;
    else {
      if (report.type === 'done') {
        for (const [name, value] of Object.entries(report.figures))
          result.figures[name] = (result.figures[name] ?? 0) + value;
        result.longestMs = Math.max(result.longestMs, report.longestMs);
        onProgress?.(result.figures['schedules'] ?? 0);
      }
      proceed();
    }
  });
  child.on('exit', (code, signal) => {
    if (current) fail(`CRASH the worker of ${describe(current)} ended with ${signal ?? code}`);
  });
  child.on('error', (error) => fail(`CRASH ${String(error)}`));
  return promise;
}

function describe(task: Task | undefined): string {
  return task ? `seeds ${task.from} to ${task.from + task.count - 1}, ${task.mode} faults` : 'no task';
}

function stop(child: ChildProcess): void {
  child.removeAllListeners();
  child.kill('SIGKILL');
}
