import { ownDraft, type TurnRun } from '../turn/turn-run.ts';

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
