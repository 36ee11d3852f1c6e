import type { Activity, ToolOutcome, ToolProgress } from '../../../src/events/index.ts';

/** A tool call of a running turn. Provisional: its events replace it when the turn ends. */
export interface RunningCall {
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

/** The calls of a turn after an activity. */
export function withActivity(calls: readonly RunningCall[], activity: Activity): readonly RunningCall[] {
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
  { call, name }: { call: string; name: string },
  change: (call: RunningCall) => Partial<RunningCall>,
): readonly RunningCall[] {
  const known = calls.find((each) => each.call === call);
  const before = known ?? { call, name, args: '', status: 'writing' as const, progress: null, text: '' };
  const after = { ...before, ...change(before) };
  if (!known) return [...calls, after].slice(-MAX_CALLS);
  return calls.map((each) => (each === known ? after : each));
}
