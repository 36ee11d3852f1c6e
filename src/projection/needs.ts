import type { AgentCondition, AgentView } from './model.ts';

/** Conditions, most urgent first. */
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

/** Agents sorted by urgency. The sort is stable. */
export function needOrder(agents: Iterable<AgentView>): AgentView[] {
  return [...agents].toSorted((a, b) => NEED.indexOf(a.condition) - NEED.indexOf(b.condition));
}
