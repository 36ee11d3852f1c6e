import type { AgentId, ConversationId, TenantId } from '../../events/index.ts';
import { type Account, heldIn, withoutOverdue } from './account.ts';
import type { Amount } from '../turn/call-cost.ts';
import type { BudgetLedger } from './ledger.ts';
import type { BudgetAmount, BudgetLine } from '../turn/feature-types.ts';
import { cappedScopes, type CappedScope, ceilingOf, periodEnd } from './scope.ts';

/** The budgets of the tenant, of the named conversation, and of the named agent or all capped agents. */
export async function budgetReport(
  ledger: BudgetLedger,
  tenant: TenantId,
  { root, agent, now }: { root?: ConversationId | undefined; agent?: AgentId | undefined; now: number },
): Promise<BudgetLine[]> {
  const agents = agent === undefined ? (Object.keys(ledger.caps.agents ?? {}) as AgentId[]) : [agent];
  const scopes = [
    ...cappedScopes(ledger.caps, { root }).toReversed(),
    ...agents.flatMap((id) =>
      cappedScopes(ledger.caps, { agent: id }).filter(({ kind }) => kind === 'agent'),
    ),
  ];
  return Promise.all(scopes.map(async (scope) => budgetLine(scope, await ledger.look(tenant, scope), now)));
}

function budgetLine(scope: CappedScope, stored: Account, now: number): BudgetLine {
  const { kind, cap } = scope;
  const per = cap.per ?? 'ever';
  // Overdue holds count as spent, also before the next write.
  const account = withoutOverdue(stored, now);
  const { spent } = account;
  const held = heldIn(account);
  const ceiling = ceilingOf(cap);
  const free = (of: keyof Amount): number | null => {
    const limit = ceiling[of];
    return limit === null ? null : Math.max(0, limit - spent[of] - held[of]);
  };
  const freeMicroUsd = free('microUsd');
  return {
    scope: kind,
    id: scope.kind === 'tenant' ? null : scope.id,
    per,
    until: periodEnd(per, now),
    cap: { tokens: cap.tokens ?? null, usd: cap.usd ?? null },
    spent: inUsd(spent),
    held: inUsd(held),
    free: { tokens: free('tokens'), usd: freeMicroUsd === null ? null : freeMicroUsd / 1e6 },
  };
}

function inUsd({ tokens, microUsd }: Amount): BudgetAmount {
  return { tokens, usd: microUsd / 1e6 };
}
