import type { AgentCondition, AgentView } from './model.ts';

/** The order in which agents need somebody. */
export const NEED: readonly AgentCondition[] = [
  'failed',
  'waiting',
  'running',
  'held',
  'paused',
  'idle',
  'retired',
  'left',
];

/** Those who need somebody first; of equals in the order given. */
export function needOrder(agents: Iterable<AgentView>): AgentView[] {
  return [...agents].toSorted((a, b) => NEED.indexOf(a.condition) - NEED.indexOf(b.condition));
}
