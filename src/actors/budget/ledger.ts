import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { AgentId, ConversationId, TenantId } from '../../events/index.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Store } from '../../store/store.ts';
import { Account, add, type Ceiling, fits, NEW_ACCOUNT, holdAmount, settle } from './account.ts';
import { type Amount, NOTHING } from '../turn/call-cost.ts';
import type { BudgetCaps } from '../turn/feature-types.ts';
import { createEntries } from '../engine/shared-entries.ts';
import { type CappedScope, cappedScopes, ceilingOf, periodEnd, budgetKey, type Scope } from './scope.ts';

/**
 * The budgets of all processes: one account per capped scope and period, in the store.
 *  L1  Whenever a call is let through, spent + held <= cap. Spending exceeds a cap only by what calls cost beyond their
 *      reservation.
 *  L2  A hold that is never settled counts in full for ever: its call may have been paid.
 *  L3  Settling twice changes nothing. The same hold again replaces the first.
 *  L4  Without a cap the store is not asked, and nothing is counted.
 *  L5  A call belongs to the period in which it begins.
 */
export interface BudgetLedger {
  readonly caps: BudgetCaps;
  /** Throws `store_unavailable`, and `store_corrupt` for an unreadable account: what was spent is unknown. */
  reserve(place: BudgetPlace, hold: Amount & { id: string }): Promise<Reserved>;
  /** Never rejects: what cannot be written stays held. */
  settle(ticket: BudgetTicket, actual: Amount): Promise<void>;
  /** Releases a hold whose call was not made. */
  release(ticket: BudgetTicket): Promise<void>;
  look(tenant: TenantId, scope: CappedScope): Promise<Account>;
}

export interface BudgetPlace {
  tenant: TenantId;
  /** The conversation at the root of the threads. */
  root: ConversationId;
  agent: AgentId;
  /** Counter of the task tree, where this is a thread. */
  tree?: string;
}

/** A hold and the accounts that have it. */
export interface BudgetTicket {
  tenant: TenantId;
  id: string;
  keys: readonly string[];
}

export type Reserved = { ok: true; ticket: BudgetTicket } | { ok: false; refusal: BudgetRefusal };

export interface BudgetLedgerOptions {
  store: Pick<Store, 'get' | 'compareAndSet'>;
  clock: Clock;
  random: () => number;
  metrics: Metrics;
  onWarning: (error: unknown, where: string) => void;
  caps: BudgetCaps;
}

/** Longer than any call, so holds are never renewed. An overdue hold counts as spent, without its id. */
export const HOLD_MS = 3_600_000;

export function createBudgetLedger(options: BudgetLedgerOptions): BudgetLedger {
  const { store, clock, random, metrics, onWarning, caps } = options;
  const onLost = () => metrics.count('budget_retries', {});
  const entries = createEntries({ store, clock, random, parse, onLost });

  async function settleIn({ tenant, id, keys }: BudgetTicket, actual: Amount): Promise<void> {
    await Promise.all(
      keys.map(async (key) => {
        try {
          await entries.change(tenant, key, (account) => settle(account, id, actual));
        } catch (error) {
          onWarning(error, `${key}: cannot settle a call, its hold stays`);
        }
      }),
    );
  }

  return {
    caps,
    async reserve(where, { id, tokens, microUsd }) {
      const { tenant } = where;
      const asked = { tokens, microUsd };
      const now = clock.now();
      const keys: string[] = [];
      for (const scope of cappedScopes(caps, where)) {
        const key = budgetKey(scope, now);
        const hold = { id, ...asked, until: now + HOLD_MS };
        const ceiling = ceilingOf(scope.cap);
        try {
          const placed = await entries.change(tenant, key, (account) =>
            holdAmount(account, hold, ceiling, clock.now()),
          );
          if (placed.ok) {
            keys.push(key);
            continue;
          }
          metrics.count('budget_refused', { tenant, scope: scope.kind });
          await settleIn({ tenant, id, keys }, NOTHING);
          return { ok: false, refusal: refusalOf(scope, { ...placed, asked }, now) };
        } catch (error) {
          await settleIn({ tenant, id, keys }, NOTHING);
          throw error;
        }
      }
      return { ok: true, ticket: { tenant, id, keys } };
    },
    settle: settleIn,
    release: (ticket) => settleIn(ticket, NOTHING),
    look: (tenant, scope) => entries.look(tenant, budgetKey(scope, clock.now())),
  };
}

function parse(text: string | null, key: string): Account {
  if (text === null) return NEW_ACCOUNT;
  try {
    return Account.parse(JSON.parse(text));
  } catch (cause) {
    const message = `the account ${key} cannot be read, so the amount spent is unknown: repair it, or use a version that knows it`;
    throw new TroupeError('store_corrupt', message, { key }, { cause });
  }
}

/** Why a call was refused: one budget and its amounts. */
export interface BudgetRefusal {
  scope: Scope;
  /** The unit that is exhausted. */
  of: 'tokens' | 'usd';
  cap: Ceiling;
  spent: Amount;
  held: Amount;
  asked: Amount;
  /** The cap is exceeded only because of calls under way: there may be room when they end. */
  isHeld: boolean;
  message: string;
}

const PER = { day: ' per day', month: ' per month', ever: '' } as const;

function refusalOf(
  { cap, ...scope }: CappedScope,
  { spent, held, asked }: Record<'spent' | 'held' | 'asked', Amount>,
  now: number,
): BudgetRefusal {
  const ceiling = ceilingOf(cap);
  const total = add(add(spent, held), asked);
  const of = fits(total, { ...ceiling, microUsd: null }) ? 'usd' : 'tokens';
  const show = (amount: Amount) =>
    of === 'usd' ? usd(amount.microUsd) : `${amount.tokens.toLocaleString('en-US')} tokens`;
  const limit = of === 'usd' ? usd(ceiling.microUsd ?? 0) : show({ ...NOTHING, tokens: ceiling.tokens ?? 0 });
  const setting = scope.kind === 'tree' ? 'limits.maxTreeTokens' : `${pathOf(scope)}.${of}`;
  const end = periodEnd(cap.per ?? 'ever', now);
  const tooLarge = !fits(asked, ceiling);
  const message = [
    `the budget of ${nameOf(scope)} does not allow another model call: ${limit}${PER[cap.per ?? 'ever']} (${setting})`,
    `${show(spent)} spent, ${show(held)} held by calls under way, and this call may take ${show(asked)}`,
    tooLarge
      ? `one call alone is more than the cap: raise ${setting} in the agents file, or lower maxOutputTokens`
      : `raise ${setting} in the agents file${end === null ? '' : `, or wait until ${new Date(end).toISOString().slice(0, 16)}Z`}, then ask again`,
  ].join('. ');
  return { scope, of, cap: ceiling, spent, held, asked, isHeld: fits(add(spent, asked), ceiling), message };
}

/** At least two decimals, at most six. */
function usd(microUsd: number): string {
  return `$${(microUsd / 1e6).toFixed(6).replace(/0{1,4}$/, '')}`;
}

function pathOf(scope: Scope): string {
  return scope.kind === 'agent' ? `budgets.agents.${scope.id}` : `budgets.${scope.kind}`;
}

function nameOf(scope: Scope): string {
  if (scope.kind === 'agent') return `@${scope.id}`;
  if (scope.kind === 'tree') return 'all that was delegated of one message';
  return scope.kind === 'tenant' ? 'this tenant' : `the conversation ${scope.id}`;
}
