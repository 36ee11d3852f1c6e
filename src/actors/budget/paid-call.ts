import type { TenantId } from '../../events/index.ts';
import type { ModelPrice } from '../../providers/prices.ts';
import type { Metrics } from '../../metrics.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import type { Amount } from './account.ts';
import { type AskedCall, askedAmount, type CallEnd, spentAmount } from './call-amount.ts';
import type { BudgetPlace } from './ledger.ts';
import type { BudgetRefusal } from './refusal.ts';
import { takeBudget } from './take-budget.ts';

export interface PaidCall {
  /** Unique for every call, of every attempt: one that is repeated is paid again. */
  id: string;
  place: BudgetPlace;
  asked: AskedCall;
  /** Of the model that is called; null: it counts in tokens only. */
  price: ModelPrice | null;
}

export type Paid<T> =
  | { kind: 'made'; outcome: T; spent: Amount }
  | { kind: 'refused'; refusal: BudgetRefusal }
  | { kind: 'aborted' };

/** Makes a model call if every budget allows it, and counts what it cost. One that throws stays held: it may have been paid. */
export async function paidCall<T>(
  parts: Parameters<typeof takeBudget>[0],
  { id, place, asked, price }: PaidCall,
  make: () => Promise<{ outcome: T; end: CallEnd }>,
): Promise<Paid<T>> {
  const taken = await takeBudget(parts, place, { id, ...askedAmount(asked, price) });
  if (taken.kind !== 'held') return taken;
  const { outcome, end } = await make();
  const spent = spentAmount(end, asked, price);
  await parts.ledger.settle(taken.ticket, spent);
  return { kind: 'made', outcome, spent };
}

/** What a call has cost, for operators: budgets count the same. */
export function countCost(
  metrics: Metrics,
  { price, profile }: Pick<AgentRuntime, 'price' | 'profile'>,
  { microUsd }: Amount,
  tenant: TenantId,
): void {
  const { provider } = profile;
  if (price === null) metrics.count('unpriced_calls', { provider });
  else metrics.count('cost_usd', { tenant, provider }, microUsd / 1e6);
}
