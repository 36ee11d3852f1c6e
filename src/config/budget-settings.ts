import * as z from 'zod';
import { AgentId } from '../events/index.ts';
import { ModelPrice, priceOf } from '../providers/prices.ts';

/** At least one of `tokens` and `usd`. */
const Cap = z
  .strictObject({
    /** Of prompts and answers together. */
    tokens: z.int().min(1).optional(),
    /** By the prices of the models. */
    usd: z.number().positive().max(1_000_000_000).optional(),
    /** What is spent counts from the first call, or from 0:00 UTC of the day or of the first of the month. Default `ever`. */
    per: z.enum(['day', 'month', 'ever']).optional(),
  })
  .refine(({ tokens, usd }) => tokens !== undefined || usd !== undefined, 'a budget needs tokens or usd');

/**
 * The `budgets` block of a definition: what model calls may cost, over all processes. A call is made only if what was
 * spent, what calls under way may take and the most it may cost itself are within every cap.
 */
export const BudgetSettings = z.strictObject({
  /** For each tenant. */
  tenant: Cap.optional(),
  /** For each conversation, with all that is delegated in it. */
  conversation: Cap.optional(),
  /** For an agent in all conversations of a tenant. */
  agents: z.record(AgentId, Cap).optional(),
});
export type BudgetSettings = z.infer<typeof BudgetSettings>;

const LooseCap = z.object({ usd: z.number().optional().catch(undefined) }).catch({});
/** What can be read of a block that may be broken anywhere. */
export const BudgetSketch = z
  .object({
    tenant: LooseCap.optional(),
    conversation: LooseCap.optional(),
    agents: z.record(z.string(), LooseCap).catch({}),
  })
  .catch({ agents: {} });

interface PricedAgent {
  id?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  price?: unknown;
}

/** Budgets of unknown agents, and budgets in usd for models without a price. */
export function* budgetProblems(
  { tenant, conversation, agents: capped }: z.infer<typeof BudgetSketch>,
  agents: readonly PricedAgent[],
  summariser: string | undefined,
): Generator<{ path: PropertyKey[]; message: string }> {
  yield* unknownAgents(Object.keys(capped), agents);
  const isMoneyForAll = tenant?.usd !== undefined || conversation?.usd !== undefined;
  const isMoneyForOne = Object.values(capped).some(({ usd }) => usd !== undefined);
  for (const [index, { id, provider, model = 'default', price }] of agents.entries()) {
    const isCapped = isMoneyForAll || (id !== undefined && capped[id]?.usd !== undefined);
    // The agents that it summarises for pay its calls.
    if (!isCapped && !(isMoneyForOne && id !== undefined && id === summariser)) continue;
    if (provider === 'scripted' || isPriced(price, model)) continue;
    const why = `a budget in usd counts its calls, and the price of the model "${model}" is not known`;
    yield { path: ['agents', index, 'price'], message: `${why}: ${WHAT_TO_DO}` };
  }
}

function isPriced(price: unknown, model: string): boolean {
  return price !== undefined || priceOf(model) !== null;
}

function* unknownAgents(capped: readonly string[], agents: readonly PricedAgent[]) {
  const ids = agents.map(({ id }) => id);
  for (const id of capped) {
    if (ids.includes(id)) continue;
    const known = [...new Set(ids)].filter(Boolean).join(', ') || 'none';
    yield { path: ['budgets', 'agents', id], message: `there is no agent "${id}"; known: ${known}` };
  }
}

const FIELDS = Object.keys(ModelPrice.shape).filter((field) => field !== 'long');
const WHAT_TO_DO = `set price (${FIELDS.join(', ')}, in dollars per million tokens), or give the budget in tokens`;
