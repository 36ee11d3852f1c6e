import { baselineTokens, limitIn, type CompactionRun, roomOf, startRun } from '../../context/index.ts';
import { TroupeError } from '../../errors.ts';
import type { CompactionReason } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { availableIn } from './policy-for.ts';

/** A relief of a running turn. */
export interface TurnCompaction extends CompactionRun {
  readonly run: TurnRun;
  /** Counts within the step, from 1. */
  readonly attempt: number;
}

export function startCompaction(run: TurnRun, reason: CompactionReason): TurnCompaction {
  const { prompt, policy, live } = run;
  if (!prompt) throw new TroupeError('internal', 'relief begins with a prompt that is too long');
  const { estimate, total } = prompt.tokens;
  // Not the prompt's: a refusal may have told of a smaller window since.
  const available = availableIn(run.runtime, run.model);
  const asked = reason === 'overflow' ? Math.max(available, askedIn(run)) : 0;
  const sizes = {
    available,
    fixed: baselineTokens(run.baseline.body),
    ratio: Math.max(estimate, asked) / Math.max(1, total),
    reason,
  };
  const work = startRun(live.view, { reason, policy, room: roomOf(sizes, policy) });
  return { ...work, run, attempt: run.compaction.count + 1 };
}

/** What the refused request came to, by the provider's count; 0 where it did not say. What was refused did not fit. */
function askedIn({ failure }: TurnRun): number {
  return limitIn(failure?.message ?? '')?.asked ?? 0;
}
