import type { AgentCondition, AgentView, Projection } from './model.ts';

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
