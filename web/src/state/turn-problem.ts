import type { TurnView } from '../../../src/library/projection/model.ts';

/** A turn that failed, or one that went on after a tool failed or was lost. */
export function hasProblem({ status, error, calls }: TurnView): boolean {
  if (status === 'failed' || error !== null) return true;
  return calls.some(({ outcome }) => outcome === 'failed' || outcome === 'lost');
}
