import type { AgentCondition, AgentView, Projection } from './model.ts';

/** Figures of one conversation in a list of conversations. */
export interface OverviewFigures {
  /** The condition of the most urgent agent; null without agents. */
  condition: AgentCondition | null;
  agents: number;
  failed: number;
  running: number;
  waiting: number;
  compactions: number;
  turns: number;
}

export function overviewFigures({
  agents: byId,
  totals,
}: Pick<Projection, 'agents' | 'totals'>): OverviewFigures {
  const agents = Object.values(byId);
  const count = (condition: AgentCondition) => agents.filter((agent) => agent.condition === condition).length;
  return {
    condition: needOrder(agents)[0]?.condition ?? null,
    agents: agents.length,
    failed: count('failed'),
    running: count('running'),
    waiting: count('waiting'),
    compactions: totals.compactions,
    turns: totals.turns,
  };
}

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
