import { judge } from './judge.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import { writeKept } from '../steering/step-journal.ts';
import { changed, ownDraft, type Outcome, type TurnRun, written } from '../turn/turn-run.ts';
import { type Event, type EventDraft, eventOf } from '../../events/index.ts';

/** Decides whether a turn may end with its present answer or takes another step. */
export async function superviseTurn(run: TurnRun): Promise<Outcome> {
  const verdict = judge(run);
  if (verdict.kind === 'corrected') {
    await Promise.all([writeKept(run), written(run)]);
    return correct(run, verdict.drafts);
  }
  if (verdict.kind === 'failed') {
    const { code, message } = verdict.fault;
    const ending = { kind: 'failed', code, message } as const;
    return { event: { type: 'REFUSED' }, run: changed(run, { ending }) };
  }
  // Needs no place: a step without calls has no other guard event.
  const outputs = verdict.kind === 'given up' ? [stopDraft(run, verdict.stop)] : [];
  return { event: { type: 'ACCEPTED' }, run: changed(run, {}, { outputs }) };
}

/** Sends an answer back: its text becomes a step, and a note for the next step alone says why the turn goes on. */
export function correct(run: TurnRun, why: readonly EventDraft[]): Outcome {
  const { answer, step: index } = run;
  const outputs: EventDraft[] = [];
  if (answer && answer.text.trim() !== '') {
    const { text, reasoning } = answer;
    outputs.push({
      ...ownDraft(run, `step:${index}`),
      kind: 'step',
      body: { index, content: text, calls: [], ...(reasoning && { reasoning }) },
    });
  }
  outputs.push(...why);
  return { event: { type: 'CORRECTED' }, run: changed(run, { step: index + 1, answer: null }, { outputs }) };
}

/** Index of the step that this event answers, from 0: a step event, or the correction of an empty answer. */
export function answeredStep(event: Event): number | null {
  const step = eventOf(event, 'step');
  if (step) return step.body.index;
  const note = event.kind === 'injection' ? /:(?:note|again):(\d+)$/.exec(event.id) : null;
  return note ? Number(note[1]) : null;
}
