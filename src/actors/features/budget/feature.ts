import type { Feature, TurnRun } from '../../attempt/turn-run.ts';
import {
  createBudgetAccounts,
  type BudgetAccounts,
  type BudgetPlace,
  type BudgetRefusal,
  type BudgetTicket,
  type Account,
  heldIn,
  withoutOverdue,
  cappedScopes,
  type CappedScope,
  ceilingOf,
  periodEnd,
} from './accounts.ts';
import { type Amount, askedAmount, type CallEnd, spent } from '../../attempt/call-cost.ts';
import type { Paid, PaidCall, BudgetAmount, BudgetLine } from '../../attempt/feature-types.ts';
import type { Clock } from '../../../base/clock.ts';
import type { AgentId, ConversationId, TenantId } from '../../../events/index.ts';

export const budget: Feature = {
  open(parts) {
    const { caps = {} } = parts;
    const accounts = createBudgetAccounts({ ...parts, caps });
    return {
      budget: {
        hasCaps: Boolean(caps.tenant ?? caps.conversation ?? caps.agents),
        pay: (run, call, make) => paidCall(budgetPartsOf(accounts, run), call, placeOf(run), make),
        report: (tenant, of) => budgetReport(accounts, tenant, of),
      },
    };
  },
};

/** Makes a model call if every budget allows it, and counts its cost. If `make` throws, the hold stays: the call may be paid. */
async function paidCall<T>(
  parts: Parameters<typeof takeBudget>[0],
  { id, asked, price }: PaidCall,
  place: BudgetPlace,
  make: () => Promise<{ outcome: T; end: CallEnd }>,
): Promise<Paid<T>> {
  const taken = await takeBudget(parts, place, { id, ...askedAmount(asked, price) });
  if (taken.kind === 'refused') return { kind: 'refused', message: taken.refusal.message };
  if (taken.kind === 'aborted') return taken;
  const made = spent(await make(), asked, price);
  await parts.accounts.settle(taken.ticket, made.spent);
  return made;
}

/** Maximum wait for running calls, which hold more than they will cost, ms. */
const MAX_WAIT_MS = 60_000;
const RETRY_MS = 1_000;

type Taken =
  | { kind: 'held'; ticket: BudgetTicket }
  | { kind: 'refused'; refusal: BudgetRefusal }
  | { kind: 'aborted' };

/** Reserves one model call. A spent budget refuses immediately. If amounts are only held, it is tried again for a while. */
export async function takeBudget(
  {
    accounts,
    clock,
    random,
    signal,
  }: { accounts: BudgetAccounts; clock: Clock; random: () => number; signal: AbortSignal },
  place: BudgetPlace,
  hold: Amount & { id: string },
): Promise<Taken> {
  const deadline = clock.monotonic() + MAX_WAIT_MS;
  for (;;) {
    const reserved = await accounts.reserve(place, hold);
    if (reserved.ok) return { kind: 'held', ticket: reserved.ticket };
    const { refusal } = reserved;
    if (!refusal.isHeld || clock.monotonic() >= deadline) return { kind: 'refused', refusal };
    await clock.sleep(RETRY_MS * (0.5 + random()), signal);
    if (signal.aborted) return { kind: 'aborted' };
  }
}

/** Dependencies for reserving calls of a turn. A lost lease or a shutdown ends the wait. */
function budgetPartsOf(accounts: BudgetAccounts, { deps, lease }: TurnRun): Parameters<typeof takeBudget>[0] {
  const { clock, random, stopping } = deps;
  return { accounts, clock, random, signal: AbortSignal.any([lease.signal, stopping]) };
}

/** The budgets of a turn. The root conversation pays for its threads. */
function placeOf({ live }: TurnRun): BudgetPlace {
  const { tenant, conversation, agent } = live.address;
  const opened = live.tasks.thread?.opened;
  if (!opened) return { tenant, root: conversation, agent };
  return { tenant, root: opened.root, agent, tree: opened.tree ?? '' };
}

/** The budgets of the tenant, of the named conversation, and of the named agent or all capped agents. */
export async function budgetReport(
  accounts: BudgetAccounts,
  tenant: TenantId,
  { root, agent, now }: { root?: ConversationId | undefined; agent?: AgentId | undefined; now: number },
): Promise<BudgetLine[]> {
  const agents = agent === undefined ? (Object.keys(accounts.caps.agents ?? {}) as AgentId[]) : [agent];
  const scopes = [
    ...cappedScopes(accounts.caps, { root }).toReversed(),
    ...agents.flatMap((id) =>
      cappedScopes(accounts.caps, { agent: id }).filter(({ kind }) => kind === 'agent'),
    ),
  ];
  return Promise.all(scopes.map(async (scope) => budgetLine(scope, await accounts.look(tenant, scope), now)));
}

function budgetLine(scope: CappedScope, stored: Account, now: number): BudgetLine {
  const { kind, cap } = scope;
  const per = cap.per ?? 'ever';
  // Overdue holds count as spent even before the next write.
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
