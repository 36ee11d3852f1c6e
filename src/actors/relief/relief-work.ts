import { baselineTokens, type ReliefWork, roomOf, startWork } from '../../context/index.ts';
import { TroupeError } from '../../errors.ts';
import type { ReliefReason } from '../../events/index.ts';
import type { TurnRun } from '../turn-run.ts';

/** A relief of a running turn. */
export interface TurnRelief extends ReliefWork {
  readonly run: TurnRun;
}

export function startRelief(run: TurnRun, reason: ReliefReason): TurnRelief {
  const { prompt, policy, live } = run;
  if (!prompt) throw new TroupeError('internal', 'relief begins with a prompt that is too long');
  const { estimate, total, window, reserved } = prompt.tokens;
  const sizes = {
    available: window - reserved,
    fixed: baselineTokens(run.baseline.body),
    ratio: estimate / Math.max(1, total),
    reason,
  };
  return { ...startWork(live.view, { reason, policy, room: roomOf(sizes, policy) }), run };
}
