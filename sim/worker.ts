import type { Mode } from './faults.ts';
import { mutate } from './mutate.ts';
import type { Outcome } from './schedule.ts';

/** A child process of `run.ts`: runs ranges of seeds on request, and reports the results. */
export interface Task {
  mode: Mode;
  from: number;
  count: number;
}

export type Report =
  | { type: 'ready' }
  | { type: 'done'; task: Task; figures: Record<string, number>; longestMs: number }
  | { type: 'violation'; outcome: Outcome }
  | { type: 'stale'; problem: string };

const [name] = process.argv.slice(2);
await main(name ?? '');

async function main(mutantName: string): Promise<void> {
  // Thousands of errors are thrown here, and their stacks are never read.
  Error.stackTraceLimit = 0;
  let plainDedup = false;
  try {
    if (mutantName !== '') plainDedup = mutate(mutantName).plainDedup ?? false;
  } catch (error) {
    return report({ type: 'stale', problem: String(error) });
  }
  const { runSchedule } = await import('./schedule.ts');
  process.on('message', (task: Task) => void perform(task));
  report({ type: 'ready' });

  async function perform(task: Task): Promise<void> {
    const figures: Record<string, number> = {};
    let longestMs = 0;
    let schedules = 0;
    for (let seed = task.from; seed < task.from + task.count; seed++) {
      const outcome = await runSchedule({ seed, mode: task.mode, plainDedup });
      schedules += 1;
      longestMs = Math.max(longestMs, outcome.settledMs);
      for (const [figure, value] of Object.entries(outcome.figures))
        figures[figure] = (figures[figure] ?? 0) + value;
      if (outcome.violations.length === 0) continue;
      report({ type: 'violation', outcome });
      break;
    }
    figures['schedules'] = schedules;
    report({ type: 'done', task, figures, longestMs });
  }
}

function report(result: Report): void {
  process.send?.(result);
}
