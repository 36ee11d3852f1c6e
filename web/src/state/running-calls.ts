import type { Activity, ActivityNote, ToolOutcome, ToolProgress } from '../../../src/events/index.ts';

/** A tool call of a running turn. Provisional: its events replace it when the turn ends. */
export interface RunningCall {
  attempt: number;
  step: number;
  call: string;
  name: string;
  /** The arguments so far. */
  args: string;
  status: 'writing' | 'running' | ToolOutcome;
  progress: ToolProgress | null;
  /** Its result. */
  text: string;
}

/** The newest calls of a turn that are kept, and the length of their arguments. */
const MAX_CALLS = 20;
const MAX_ARGS = 4_096;

/** What happens in a turn. */
export type TurnActivity = Pick<ActivityNote, 'attempt' | 'step'> & Activity;

/** The calls of a turn after an activity. Another process that goes on with the turn begins a new attempt. */
export function withActivity(known: readonly RunningCall[], activity: TurnActivity): readonly RunningCall[] {
  const calls = known.every(({ attempt }) => attempt === activity.attempt) ? known : [];
  switch (activity.kind) {
    case 'void':
      return activity.all ? [] : calls.filter(({ status }) => status !== 'writing');
    case 'reasoning':
      return calls;
    case 'arguments': {
      const { index, text } = activity;
      return changed(calls, activity, ({ args }) => ({
        args: `${index === 0 ? '' : args}${text}`.slice(0, MAX_ARGS),
      }));
    }
    case 'dropped':
      return calls.filter(({ step, call }) => step !== activity.step || call !== activity.call);
    case 'called':
      return changed(calls, activity, () => ({ status: 'running', args: activity.args }));
    case 'progress': {
      const { text, done, total } = activity;
      return changed(calls, activity, () => ({ status: 'running', progress: { text, done, total } }));
    }
    case 'result':
      return changed(calls, activity, () => ({ status: activity.outcome, text: activity.text }));
  }
}

function changed(
  calls: readonly RunningCall[],
  { attempt, step, call, name }: Pick<RunningCall, 'attempt' | 'step' | 'call' | 'name'>,
  change: (call: RunningCall) => Partial<RunningCall>,
): readonly RunningCall[] {
  const known = calls.find((each) => each.step === step && each.call === call);
  const status = 'writing' as const;
  const before = known ?? { attempt, step, call, name, args: '', status, progress: null, text: '' };
  const after = { ...before, ...change(before) };
  if (!known) return [...calls, after].slice(-MAX_CALLS);
  return calls.map((each) => (each === known ? after : each));
}
