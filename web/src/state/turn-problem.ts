import type { TurnView } from '../../../src/library/projection/model.ts';

/** Whether a turn failed, or continued after a tool had failed or was lost. */
export function hasProblem({ status, error, calls }: TurnView): boolean {
  if (status === 'failed' || error !== null) return true;
  return calls.some(({ outcome }) => outcome === 'failed' || outcome === 'lost');
}
