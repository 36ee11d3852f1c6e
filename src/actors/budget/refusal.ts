import type { Amount, Ceiling } from './account.ts';
import { add, fits, NOTHING } from './account.ts';
import { ceilingOf, type CappedScope, periodEnd, type Scope } from './scope.ts';

/** Why a call was not let through: one budget, and what stands in it. */
export interface BudgetRefusal {
  scope: Scope;
  /** What there is too little of. */
  of: 'tokens' | 'usd';
  cap: Ceiling;
  spent: Amount;
  held: Amount;
  asked: Amount;
  /** Calls under way hold more than they will cost: when they have ended there may be room. */
  isHeld: boolean;
  message: string;
}

const PER = { day: ' per day', month: ' per month', ever: '' } as const;

export function refusalOf(
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

/** Of cents, as many places as say something. */
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
