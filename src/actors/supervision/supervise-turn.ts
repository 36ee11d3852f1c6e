import type { AgentEvent } from '../../machines/agent-lifecycle.ts';
import { judge } from './judge.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { type Event, eventOf } from '../../events/index.ts';

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

/**
 * Sends an answer back: what was said so far becomes a step of its own, and the next step alone is told why the turn goes
 * on.
 */
export function correct(run: TurnRun, content: string): void {
  const { answer, step: index } = run;
  if (answer && answer.text.trim() !== '') {
    const { text, reasoning } = answer;
    run.outputs.push({
      ...ownDraft(run, `step:${index}`),
      kind: 'step',
      body: { index, content: text, calls: [], ...(reasoning && { reasoning }) },
    });
  }
  run.outputs.push({
    ...ownDraft(run, `note:${index}`),
    kind: 'injection',
    body: { content, oneStep: true },
  });
  run.step += 1;
  run.answer = null;
  run.partial = '';
}

/** The step whose answer this event is, from 0: words with or without calls, or what was said to an answer without any. */
export function answeredStep(event: Event): number | null {
  const step = eventOf(event, 'step');
  if (step) return step.body.index;
  const note = event.kind === 'injection' ? /:note:(\d+)$/.exec(event.id) : null;
  return note ? Number(note[1]) : null;
}
