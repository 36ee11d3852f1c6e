import type { TurnRun } from '../turn/turn-run.ts';
import type { BudgetPlace } from './ledger.ts';
import type { takeBudget } from './take-budget.ts';

/** Who asks for a turn's calls, and for how long: a lost lease and an orderly end break the waiting off. */
export function payerOf({ deps, lease }: TurnRun): Parameters<typeof takeBudget>[0] {
  const { budgets: ledger, clock, random, stopping } = deps;
  return { ledger, clock, random, signal: AbortSignal.any([lease.signal, stopping]) };
}

/** What a thread costs is of the conversation that it began in. */
export function placeOf({ live }: TurnRun): BudgetPlace {
  const { tenant, conversation, agent } = live.address;
  const opened = live.tasks.thread?.opened;
  if (!opened) return { tenant, root: conversation, agent };
  return { tenant, root: opened.root, agent, tree: opened.tree ?? '' };
}
