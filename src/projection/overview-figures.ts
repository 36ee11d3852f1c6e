import type { AgentCondition, Projection } from './model.ts';
import { needOrder } from './need.ts';

/** What a list of conversations says of one. */
export interface OverviewFigures {
  /** That of its neediest agent; null where it has none. */
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
