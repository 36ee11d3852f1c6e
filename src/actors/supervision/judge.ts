import type { GuardStoppedBody } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { countCorrections } from './count-corrections.ts';
import { gateOf } from './gates.ts';

export type Verdict =
  | { kind: 'accepted' }
  | { kind: 'corrected'; text: string }
  /** Accepted, though something is still to be done: people are told. */
  | { kind: 'given up'; stop: GuardStoppedBody };

/** Whether a turn may end with the answer that it has. */
export function judge(run: TurnRun): Verdict {
  const { idle, most } = run.runtime.supervision;
  const text = idle > 0 && most > 0 ? gateOf(run) : null;
  if (text === null) return { kind: 'accepted' };
  const stop = stopOf(run);
  return stop ? { kind: 'given up', stop } : { kind: 'corrected', text };
}

function stopOf({ outputs, live, runtime, step, deps }: TurnRun): GuardStoppedBody | null {
  const { idle, most } = runtime.supervision;
  const made = countCorrections(outputs, live.tasks.todos.get(live.address.agent) ?? null);
  const goOn = 'ask again to go on from here';
  if (step + 1 >= deps.limits.maxSteps) {
    const message = `@${live.address.agent} has not finished after ${step + 1} steps (limits.maxSteps ${deps.limits.maxSteps})`;
    return { guard: 'steps', message, goOn: `${goOn}, or raise limits.maxSteps in the agents file` };
  }
  if (made.idle >= idle) {
    const message = `@${live.address.agent} was told ${made.idle} times that it has not finished, and changed nothing (supervision.idle ${idle})`;
    return { guard: 'supervision', message, goOn };
  }
  if (made.all < most) return null;
  const message = `@${live.address.agent} was told ${made.all} times in one turn that it has not finished (supervision.most ${most})`;
  return { guard: 'supervision', message, goOn: `${goOn}, or raise supervision.most in the agents file` };
}
