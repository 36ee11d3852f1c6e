import type { Facts } from '../../events/index.ts';
import { renderFacts } from './render-facts.ts';

/** Of a compaction's room. Facts are small and dense, so they take what they need up to here; quotes get the rest. */
const MAX_FACTS_SHARE = 0.5;

/** How a compaction's room is shared out before anything is chosen. */
export function shareBudget(
  facts: Facts,
  budget: number,
  count: (text: string) => number,
): { facts: number; quotes: number } {
  const most = Math.floor(budget * MAX_FACTS_SHARE);
  const needed = count(renderFacts(facts, most, count));
  return { facts: needed, quotes: budget - needed };
}
