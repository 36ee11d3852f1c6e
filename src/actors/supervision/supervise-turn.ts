import type { AgentEvent } from '../../machines/agent-lifecycle.ts';
import { correct } from './correct.ts';
import { judge } from './judge.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/** Looks at how a turn is about to end: it ends, or takes one more step. */
export function superviseTurn(run: TurnRun): Promise<AgentEvent> {
  const verdict = judge(run);
  if (verdict.kind === 'corrected') {
    correct(run, verdict.text);
    return Promise.resolve({ type: 'CORRECTED' });
  }
  // The only event of a guard in a step without calls.
  if (verdict.kind === 'given up') run.outputs.push(stopDraft(run, verdict.stop));
  return Promise.resolve({ type: 'ACCEPTED' });
}
