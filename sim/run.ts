import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Mode } from './faults.ts';
import { MUTANTS } from './mutants.ts';
import { type PoolResult, runPool } from './pool.ts';
import type { Task } from './worker.ts';

/**
 * `npm run sim -- --schedules N --seed S`: runs N schedules with all faults and N/4 with light faults; stops at the
 * first violation. `--light`: N light ones only. `--mutants`: every mutant must be caught, within N schedules each.
 * `--trace` prints the steps of the first schedule and the hash of their order. `--within S`: starts no schedules
 * after S seconds, and prints how many ran. `--jobs`, `--json`.
 */
const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    light: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    jobs: { type: 'string', default: String(availableParallelism()) },
    within: { type: 'string' },
  },
});
const schedules = numberOf('schedules', values.schedules);
const jobs = numberOf('jobs', values.jobs);
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', values.seed);
const withinMs = values.within === undefined ? Infinity : numberOf('within', values.within) * 1_000;
/** Seeds per task: enough to be worth a message, few enough that all cores end at about the same time. */
const TASK_SIZE = 100;
const FIRST_MODE: Mode = values.light ? 'light' : 'full';

process.exitCode = values.trace ? await trace() : values.mutants ? await runMutants() : await runSchedules();

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= (name === 'seed' ? 0 : 1)) return number;
  throw new Error(`--${name} must be a whole number, not ${text}`);
}

async function runSchedules(): Promise<number> {
  const first = tasksOf(FIRST_MODE, schedules);
  const light = values.light ? [] : tasksOf('light', Math.floor(schedules / 4));
  // Light tasks between the others, so that a time limit leaves some of both.
  const tasks = first.flatMap((task, index) =>
    index % 4 === 0 ? [task, ...light.slice(index / 4, index / 4 + 1)] : [task],
  );
  const began = performance.now();
  const result = await runPool({ tasks, jobs, until: began + withinMs, onProgress: progress(tasks) });
  await printViolation(result);
  const bad = result.violation || result.problem !== null ? 1 : 0;
  const total = tasks.reduce((sum, { count }) => sum + count, 0);
  printFigures(
    { ...result.figures, total, violations: bad },
    (performance.now() - began) / 1_000,
    result.longestMs,
  );
  return bad;
}

async function printViolation({ violation, problem }: PoolResult): Promise<void> {
  if (problem !== null) console.log(problem);
  if (!violation) return;
  const { shrink, describeOutcome } = await import('./shrink.ts');
  console.log(describeOutcome(await shrink(violation)));
}

function printFigures(
  figures: Record<string, number> & { total: number },
  seconds: number,
  longestMs: number,
): void {
  const count = figures['schedules'] ?? 0;
  const all = {
    ...figures,
    seconds: Number(seconds.toFixed(1)),
    perSecond: Math.round(count / seconds),
    seeds: `${seed}..${seed + schedules - 1}`,
    bound: count > 0 ? Number((3 / count).toPrecision(2)) : 1,
    slowestToSettleMs: Math.round(longestMs),
  };
  if (values.json) return console.log(JSON.stringify(all));
  const of = (name: string) => figures[name] ?? 0;
  const parts = [
    count < all.total ? `${count} of ${all.total} schedules within the time limit` : `${count} schedules`,
    `${of('turns')} turns`,
    `${of('crashes')} crashes`,
    `${of('ambiguous')} ambiguous acks`,
    `${of('failed')} failed operations`,
    `${of('stalls')} stalls`,
    `${of('queueLosses')} queue losses`,
    `${of('nextLosses')} next jobs lost`,
    `${of('pauses')} pauses`,
    `${of('jumps')} clock jumps`,
    `${of('cancels')} cancels`,
    `${of('joins')} joins`,
    `${of('tasks')} tasks (${of('expired')} expired)`,
    `${of('decisions')} answers and decisions`,
    `${of('steered')} steered`,
    `${of('calls')} tool calls (${of('lost')} lost)`,
    `${of('poisoned')} poisoned`,
    `${of('compacted')} prompts of compacted or steered views`,
    `${of('restored')} folds from checkpoints (${of('damages')} damaged)`,
    `${of('sessionRequests')} requests of open sessions`,
    `${of('violations')} violations`,
    `${all.seconds} s`,
    `${all.perSecond}/s`,
    `seeds ${all.seeds}`,
    `failure rate < ${all.bound} at 95 %`,
    `settled after at most ${all.slowestToSettleMs} ms`,
  ];
  console.log(parts.join(', '));
}

async function runMutants(): Promise<number> {
  const began = performance.now();
  const { only } = values;
  const chosen = MUTANTS.filter(({ name }) => only === undefined || name.includes(only));
  const waiting = [...chosen];
  let caught = 0;
  let total = 0;
  const lane = async () => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const result = await runPool({ tasks: tasksOf(mutant.mode, schedules), jobs: 1, mutant: mutant.name });
      const { caught: isCaught, text } = verdictOf(result);
      if (isCaught) caught += 1;
      total += result.figures['schedules'] ?? 0;
      console.log(`${mutant.name} (${mutant.mode}): ${text}`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, lane));
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`${caught}/${chosen.length} mutants caught, ${total} schedules, ${seconds} s, seed ${seed}`);
  return caught === chosen.length ? 0 : 1;
}

function verdictOf({ violation, problem, figures }: PoolResult): {
  caught: boolean;
  text: string;
} {
  if (violation) {
    const more = violation.violations.length > 1 ? ` (and ${violation.violations.length - 1} more)` : '';
    return {
      caught: true,
      text: `caught after ${figures['schedules'] ?? 0} schedules by ${violation.violations[0]}${more}`,
    };
  }
  if (problem === null)
    return { caught: false, text: `NOT CAUGHT in ${figures['schedules'] ?? 0} schedules` };
  return { caught: problem.startsWith('HANG') || problem.startsWith('CRASH'), text: problem };
}

async function trace(): Promise<number> {
  const { runSchedule } = await import('./schedule.ts');
  const { describeOutcome } = await import('./shrink.ts');
  const outcome = await runSchedule({ seed, mode: FIRST_MODE, onStep: (line) => console.log(line) });
  console.log(describeOutcome(outcome));
  console.log(`trace ${outcome.trace.toString(16).padStart(8, '0')}`);
  return outcome.violations.length > 0 ? 1 : 0;
}

function tasksOf(mode: Mode, count: number): Task[] {
  const tasks: Task[] = [];
  for (let done = 0; done < count; done += TASK_SIZE)
    tasks.push({ mode, from: seed + done, count: Math.min(TASK_SIZE, count - done) });
  return tasks;
}

function progress(tasks: readonly Task[]): (done: number) => void {
  const total = tasks.reduce((sum, { count }) => sum + count, 0);
  let reportedAt = performance.now();
  return (done) => {
    if (performance.now() - reportedAt < 5_000) return;
    reportedAt = performance.now();
    process.stderr.write(`${done}/${total} schedules\n`);
  };
}
