import { baselineTokens, type CompactionRun, limitIn, roomOf, startRun } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { CompactionProgressBody, CompactionReason } from '../../events/index.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { availableIn } from '../turn/model-window.ts';
import type { Metrics } from '../../events/metrics.ts';
import { hasStalled, STALLED_AFTER } from '../../context/compaction/strategies.ts';

/** The compaction that a running turn makes. */
export interface TurnCompaction extends CompactionRun {
  readonly run: TurnRun;
  /** Counts within the step, from 1. */
  readonly attempt: number;
}

export function startCompaction(run: TurnRun, reason: CompactionReason): TurnCompaction {
  const { prompt, policy, live } = run;
  if (!prompt) throw new TroupeError('internal', 'a compaction needs an assembled prompt');
  const { estimate, total } = prompt.tokens;
  // Computed again: a refusal may have named a smaller window since the prompt was built.
  const available = availableIn(run.runtime, run.model);
  const asked = reason === 'overflow' ? Math.max(available, askedIn(run)) : 0;
  const sizes = {
    available,
    fixed: baselineTokens(run.baseline.body),
    ratio: Math.max(estimate, asked) / Math.max(1, total),
    reason,
    history: live.view.tokens,
  };
  const work = startRun(live.view, { reason, policy, room: roomOf(sizes, policy) });
  return { ...work, run, attempt: run.compaction.count + 1 };
}

/** Size of the refused request by the provider's count; 0 if it named none. */
function askedIn({ failure }: TurnRun): number {
  return limitIn(failure?.message ?? '')?.asked ?? 0;
}

/** Logs the progress of a compaction for people; no prompt depends on it. The id has the fence, so a retry logs its own. */
export async function noteCompaction(
  { run, reason, before, after, attempt }: TurnCompaction,
  phase: CompactionProgressBody['phase'],
  more: Partial<Pick<CompactionProgressBody, 'strategy' | 'range' | 'message'>> = {},
): Promise<void> {
  const { deps, live, lease, step } = run;
  const what = more.strategy ? `.${more.strategy}` : '';
  // The id has the reason too: after a compaction that achieved nothing, a refusal may ask for another one.
  const part = `compaction.${phase}:${lease.record.fence}.${step}.${attempt}.${reason}${what}`;
  const own = ownDraft(run, part);
  const tokens = { before, after: phase === 'started' ? null : after };
  const body: CompactionProgressBody = {
    phase,
    agent: live.address.agent,
    attempt,
    step: step + 1,
    reason,
    tokens,
    ...more,
  };
  await deps.log.append(live.address, [{ ...own, kind: 'compaction.progress', body }]);
  countCompaction(deps.metrics, body);
}

function countCompaction(
  metrics: Metrics,
  { phase, reason, strategy = 'prune', tokens }: CompactionProgressBody,
): void {
  if (phase === 'failed') metrics.count('compactions_failed', { reason });
  if (phase !== 'done' && phase !== 'pruned') return;
  metrics.count('compactions', { strategy, reason });
  metrics.count(
    'compaction_saved_tokens',
    { strategy, reason },
    tokens.before - (tokens.after ?? tokens.before),
  );
}

/** The reason for making no further compaction; null if another one may be made. */
export function brokenCircuit(work: TurnCompaction): string | null {
  if (!hasStalled(work)) return null;
  return `the last ${STALLED_AFTER} compactions brought the prompt hardly under its limit, so no further one is made`;
}
