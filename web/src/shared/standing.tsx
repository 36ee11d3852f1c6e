import type { AgentCondition } from '../../../src/library/projection/model.ts';
import type { StandingState } from '../../../src/library/projection/standing.ts';
import { Condition } from './condition.tsx';

export const STATE_WORDS: Record<StandingState, string> = {
  failed: 'Failed',
  asks: 'Needs you',
  running: 'Running',
  waiting: 'Waiting',
  quiet: 'Quiet',
};

/** For each state, the agent condition whose look it shares. */
const LOOKS: Record<StandingState, AgentCondition> = {
  failed: 'failed',
  asks: 'waiting',
  running: 'running',
  waiting: 'held',
  quiet: 'idle',
};

/** Icon of a state; the word is for screen readers. */
export function StateIcon({ of }: { of: StandingState }) {
  return <Condition of={LOOKS[of]} isTerse />;
}
