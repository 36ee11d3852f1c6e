import { type Event, type EventDraft, eventOf, type GuardStoppedBody } from '../../events/index.ts';
import { faultDrafts, mayTell } from './answer-fault.ts';
import { type AnswerFault, changed, type Outcome, ownDraft, type TurnRun } from './turn-run.ts';

export type Verdict =
  | { kind: 'accepted' }
  | { kind: 'corrected'; drafts: EventDraft[] }
  /** Accepted with work left to do: the log says so, for people. */
  | { kind: 'given up'; stop: GuardStoppedBody }
  /** The answer is none, and the model does not mend it. */
  | { kind: 'failed'; fault: AnswerFault };

/** Whether a turn may end with the answer that it has. */
export function judge(run: TurnRun): Verdict {
  const fault = run.answer?.fault;
  if (fault && mayTell(run, fault)) return { kind: 'corrected', drafts: faultDrafts(run, fault) };
  if (fault && !fault.isTaken) return { kind: 'failed', fault };
  const held = run.deps.features.supervision?.gate(run) ?? null;
  if (!held) return { kind: 'accepted' };
  return held.kind === 'given up' ? held : { kind: 'corrected', drafts: [noteDraft(run, held.note)] };
}

/** A note for the next step alone. */
function noteDraft(run: TurnRun, content: string): EventDraft {
  return { ...ownDraft(run, `note:${run.step}`), kind: 'injection', body: { content, oneStep: true } };
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
