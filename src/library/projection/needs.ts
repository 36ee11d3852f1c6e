import type { AgentCondition, AgentView } from './model.ts';

/** A condition as people read it. `queued`: the agent was addressed and has not begun, so it is not idle. */
export type ShownCondition = AgentCondition | 'queued';

/** Conditions, most urgent first. */
export const NEED: readonly ShownCondition[] = [
  'failed',
  'waiting',
  'running',
  'held',
  'queued',
  'paused',
  'idle',
  'retired',
  'left',
];

export function shownCondition({ condition, pending }: AgentView): ShownCondition {
  return condition === 'idle' && pending.length > 0 ? 'queued' : condition;
}

/** Agents sorted by urgency. The sort is stable. */
export function needOrder(agents: Iterable<AgentView>): AgentView[] {
  const order = (agent: AgentView) => NEED.indexOf(shownCondition(agent));
  return [...agents].toSorted((a, b) => order(a) - order(b));
}
