import * as z from 'zod';
import { AgentId } from '../../events/index.ts';
import { type Problem, unknownAgent } from './problem.ts';
import { PriceSetting, priceOf } from '../../providers/prices.ts';

/** A cap: at least one of `tokens` and `usd`. */
const Cap = z
  .strictObject({
    /** Tokens of prompts and answers together. */
    tokens: z.int().min(1).optional(),
    /** US dollars, by the prices of the models. A model without a known price then needs `price`. */
    usd: z.number().positive().max(1_000_000_000).optional(),
    /** Period of the cap: each day or month, from 0:00 UTC, or without end. Default `ever`. */
    per: z.enum(['day', 'month', 'ever']).optional(),
  })
  .refine(({ tokens, usd }) => tokens !== undefined || usd !== undefined, 'a budget needs tokens or usd');

/**
 * Caps on model calls, over all processes. A call is made only if every cap covers the amounts spent, the amounts
 * reserved for running calls, and the most that the call itself may cost.
 */
export const BudgetSettings = z.strictObject({
  /** Cap for each tenant. Default: none. */
  tenant: Cap.optional(),
  /** Cap for each conversation with its threads. Default: none. */
  conversation: Cap.optional(),
  /** Caps by agent id: for the agent in all conversations of a tenant. Default: none. */
  agents: z.record(AgentId, Cap).optional(),
});
export type BudgetSettings = z.infer<typeof BudgetSettings>;

const LooseCap = z.object({ usd: z.number().optional().catch(undefined) }).catch({});
/** The readable parts of an invalid `budgets` block. */
export const BudgetSketch = z
  .object({
    tenant: LooseCap.optional(),
    conversation: LooseCap.optional(),
    agents: z.record(z.string(), LooseCap).catch({}),
  })
  .catch({ agents: {} });

interface PricedAgent {
  id?: string | undefined;
  aliases?: readonly (string | undefined)[] | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  price?: unknown;
}

/** Reports budgets of unknown agents, and budgets in usd for models without a known price. */
export function* budgetProblems(
  { tenant, conversation, agents: capped }: z.infer<typeof BudgetSketch>,
  agents: readonly PricedAgent[],
  summariser: string | undefined,
): Generator<Problem> {
  yield* unknownAgents(Object.keys(capped), agents);
  const isMoneyForAll = tenant?.usd !== undefined || conversation?.usd !== undefined;
  const isMoneyForOne = Object.values(capped).some(({ usd }) => usd !== undefined);
  for (const [index, { id, provider, model = 'default', price }] of agents.entries()) {
    const isCapped = isMoneyForAll || (id !== undefined && capped[id]?.usd !== undefined);
    // The summariser's calls are paid from the budgets of the agents whose prompts it summarises.
    if (!isCapped && !(isMoneyForOne && id !== undefined && id === summariser)) continue;
    if (provider === 'scripted' || isPriced(price, model)) continue;
    const why = `a budget in usd counts its calls, but the price of the model "${model}" is not known`;
    yield { path: ['agents', index, 'price'], message: `${why}: ${WHAT_TO_DO}` };
  }
}

function isPriced(price: unknown, model: string): boolean {
  return price !== undefined || priceOf(model) !== null;
}

function* unknownAgents(capped: readonly string[], agents: readonly PricedAgent[]) {
  const ids = agents.flatMap(({ id, aliases = [] }) => [id, ...aliases]);
  for (const id of capped) {
    if (!ids.includes(id)) yield unknownAgent(id, ids, ['budgets', 'agents', id]);
  }
}

const FIELDS = Object.keys(PriceSetting.shape);
const WHAT_TO_DO = `set price (${FIELDS.join(', ')}, in dollars per million tokens), or give the budget in tokens`;
