import type { LivePlace, Told, ToolOutcome, ToolProgress } from '../../../src/events/index.ts';

/** A tool call of a running turn. Provisional: its events replace it when the turn ends. */
export interface RunningCall {
  attempt: number;
  step: number;
  call: string;
  name: string;
  args: string;
  status: 'writing' | 'running' | ToolOutcome;
  progress: ToolProgress | null;
  text: string;
}

/** Most calls kept of a turn, the newest ones, and most characters of their arguments. */
const MAX_CALLS = 20;
const MAX_ARGS = 4_096;

export type LiveTold = Pick<LivePlace, 'attempt' | 'step'> & Told;

/** The calls of a turn after a note. Another process that continues the turn begins a new attempt. */
export function withNote(known: readonly RunningCall[], note: LiveTold): readonly RunningCall[] {
  const calls = known.every(({ attempt }) => attempt === note.attempt) ? known : [];
  switch (note.type) {
    case 'void':
      return note.all ? [] : calls.filter(({ status }) => status !== 'writing');
    case 'text':
    case 'reasoning':
      return calls;
    case 'arguments': {
      const { index, text } = note;
      return changed(calls, note, ({ args }) => ({
        args: `${index === 0 ? '' : args}${text}`.slice(0, MAX_ARGS),
      }));
    }
    case 'dropped':
      return calls.filter(({ step, call }) => step !== note.step || call !== note.call);
    case 'called':
      return changed(calls, note, () => ({ status: 'running', args: note.args }));
    case 'progress': {
      const { text, done, total } = note;
      return changed(calls, note, () => ({ status: 'running', progress: { text, done, total } }));
    }
    case 'result':
      return changed(calls, note, () => ({ status: note.outcome, text: note.text }));
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
