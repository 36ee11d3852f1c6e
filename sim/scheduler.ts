import { hashText, type Random } from './random.ts';

/**
 * Owns every await of a simulation: each await is a step here, and the scheduler runs one random step at a time.
 *
 * S1  All microtasks run between two steps, so a step and its consequences are indivisible.
 * S2  Time is simulated: it advances a little with each step, and to the next sleeper when there is no other step.
 * S3  A step of a paused owner waits until the owner wakes; of a dead owner only writes already under way may still
 * happen.
 * S4  The order depends on the random numbers alone: the same numbers give the same `trace`.
 */
export interface Owner {
  readonly name: string;
  state: 'alive' | 'paused' | 'dead';
  held: Step[];
}

export interface Step {
  owner: Owner | null;
  label: string;
  run: () => void;
  /** A write that was under way and may still happen after the owner has died. */
  ghost: (() => void) | null;
}

export interface Sleeper {
  due: number;
  owner: Owner | null;
  label: string;
  run: () => void;
}

export interface Scheduler {
  /** Simulated ms since the start. */
  now(): number;
  readonly steps: number;
  /** Hash of owners and labels in the order of the steps. */
  readonly trace: number;
  add(owner: Owner | null, label: string, run: () => void, ghost?: () => void): void;
  sleep(owner: Owner | null, label: string, ms: number, run: () => void): Sleeper;
  cancel(sleeper: Sleeper): void;
  pause(owner: Owner): void;
  resume(owner: Owner): void;
  kill(owner: Owner): void;
  /** Runs until `done` returns true or no step is left. */
  run(done: () => boolean): Promise<void>;
  /** Adds a line to the printed trace. */
  note(text: string): void;
  /** From now on steps take (almost) no time. */
  hurry(): void;
}

/** Mean simulated ms of one step. */
export const STEP_MS = 30;

export function createScheduler(random: Random, onStep?: (line: string) => void): Scheduler {
  const runnable: Step[] = [];
  const sleepers = new Set<Sleeper>();
  let time = 0;
  let nextDue = Number.POSITIVE_INFINITY;
  let stepMs = STEP_MS;
  let steps = 0;
  let trace = 0x811c9dc5;

  /** Due sleepers become steps, so a timer may be late, and due timers fire in any order. */
  function wakeSleepers(): void {
    if (time < nextDue) return;
    nextDue = Number.POSITIVE_INFINITY;
    for (const sleeper of sleepers) {
      if (sleeper.owner?.state === 'dead') sleepers.delete(sleeper);
      else if (sleeper.due <= time) {
        sleepers.delete(sleeper);
        add(sleeper.owner, sleeper.label, sleeper.run);
      } else if (sleeper.due < nextDue) nextDue = sleeper.due;
    }
  }

  function take(): Step | null {
    for (;;) {
      if (runnable.length === 0) {
        if (nextDue === Number.POSITIVE_INFINITY) return null;
        time = Math.max(time, nextDue);
        wakeSleepers();
        continue;
      }
      const at = Math.floor(random() * runnable.length);
      const step = runnable[at] as Step;
      const last = runnable.pop() as Step;
      if (last !== step) runnable[at] = last;
      const { owner } = step;
      if (owner?.state === 'paused') owner.held.push(step);
      else if (owner?.state !== 'dead') return step;
      else if (step.ghost && random() < 0.5)
        return { ...step, run: step.ghost, label: `${step.label} (late)` };
    }
  }

  function next(): boolean {
    const step = take();
    if (!step) return false;
    steps += 1;
    time += random() * 2 * stepMs;
    const line = `${step.owner?.name ?? '-'} ${step.label}`;
    trace = hashText(line, trace);
    onStep?.(`${steps} ${Math.round(time)} ${line}`);
    step.run();
    wakeSleepers();
    return true;
  }

  function add(owner: Owner | null, label: string, run: () => void, ghost: (() => void) | null = null): void {
    const step: Step = { owner, label, run, ghost };
    if (owner?.state === 'paused') owner.held.push(step);
    else runnable.push(step);
  }

  function release(owner: Owner): void {
    runnable.push(...owner.held);
    owner.held = [];
  }

  return {
    now: () => time,
    get steps() {
      return steps;
    },
    get trace() {
      return trace;
    },
    add,
    sleep(owner, label, ms, run) {
      const sleeper = { due: time + ms, owner, label, run };
      sleepers.add(sleeper);
      if (sleeper.due < nextDue) nextDue = sleeper.due;
      return sleeper;
    },
    cancel: (sleeper) => void sleepers.delete(sleeper),
    pause(owner) {
      owner.state = 'paused';
    },
    resume(owner) {
      owner.state = 'alive';
      release(owner);
    },
    kill(owner) {
      owner.state = 'dead';
      release(owner);
    },
    run: (done) =>
      new Promise((resolve, reject) => {
        const turn = () => {
          try {
            if (done() || !next()) return resolve();
          } catch (error) {
            return reject(error as Error);
          }
          queueMicrotask(again);
        };
        // A tick comes when no microtask is left (S1), and costs a fraction of a round of the event loop.
        const again = () => process.nextTick(turn);
        setImmediate(turn);
      }),
    note: (text) => onStep?.(`    ${text}`),
    hurry: () => void (stepMs = 0.05),
  };
}
