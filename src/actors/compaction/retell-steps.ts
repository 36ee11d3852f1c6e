import { earlySteps, replaceTurnSummary, turnPrefixSteps, verifySummary } from '../../context/index.ts';
import { inSlices } from '../engine/in-slices.ts';
import { askSummary } from './ask-summary.ts';
import { REQUEST_SHARE, summariserWindow } from './make-compaction.ts';
import { noteCompaction } from './note-compaction.ts';
import type { TurnCompaction } from './turn-compaction.ts';

/**
 * Has a model tell the early steps of a turn that has become too long; what was chosen of them without one stays where
 * it fails. False if the turn is to stop.
 */
export async function retellSteps(work: TurnCompaction): Promise<boolean> {
  const { run, plan, policy } = work;
  const { view } = run.live;
  if (!plan.turn || !run.runtime.summarises) return true;
  const { id, steps } = plan.turn;
  const count = run.deps.countTokens;
  const fitting = turnPrefixSteps({
    turn: id,
    trigger: view.slots.findLast(({ layer }) => layer === 'trigger')?.message.content ?? '',
    previous: null,
    outputs: earlySteps(run.outputs, steps),
    budgetTokens: policy.summaryTokens,
    secret: view.secret,
    maxTokens: Math.floor(((await summariserWindow(run)) - policy.summaryTokens) * REQUEST_SHARE),
    count,
  });
  const request = await inSlices(run.deps.clock, fitting);
  if (!request) return true;
  await noteCompaction(work, 'compaction.summarising', { strategy: 'trim' });
  const answer = await askSummary(run, request, Math.ceil(policy.summaryTokens * 1.5));
  if (answer.kind === 'aborted') return false;
  const verdict =
    answer.kind === 'failed'
      ? { kind: 'rejected' as const, why: `${answer.code}: ${answer.message}` }
      : verifySummary(answer.text, { inputTokens: request.tokens, maxTokens: policy.summaryTokens, count });
  const why =
    verdict.kind === 'rejected' ? verdict.why : replaceTurnSummary(work, verdict.text) ? null : 'too_long';
  if (why !== null) {
    const message = `the summary of the first ${steps} steps was rejected: ${why}`;
    await noteCompaction(work, 'compaction.failed', { strategy: 'trim', message });
  }
  return true;
}
