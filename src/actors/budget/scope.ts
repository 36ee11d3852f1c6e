import type { AgentId, ConversationId } from '../../events/index.ts';
import type { Ceiling } from './account.ts';
import type { BudgetCaps, Cap, Period } from '../turn/feature-types.ts';

/** Periods are in UTC. `ever` never ends. */
export type Scope =
  | { kind: 'tenant' }
  | { kind: 'conversation'; id: ConversationId }
  /** `id`: the root conversation and the counter that the tree has there. */
  | { kind: 'tree'; id: string }
  | { kind: 'agent'; id: AgentId };

export type CappedScope = Scope & { cap: Cap };

/** The scopes with a cap, the narrowest first: holds that a refusal releases then affect the fewest. */
export function cappedScopes(
  caps: BudgetCaps,
  {
    root,
    agent,
    tree,
  }: { root?: ConversationId | undefined; agent?: AgentId | undefined; tree?: string | undefined },
): CappedScope[] {
  const own =
    agent !== undefined && Object.hasOwn(caps.agents ?? {}, agent) ? caps.agents?.[agent] : undefined;
  const scopes: CappedScope[] = [];
  if (own && agent) scopes.push({ kind: 'agent', id: agent, cap: own });
  if (caps.tree && root && tree !== undefined)
    scopes.push({ kind: 'tree', id: `${root}/${tree}`, cap: caps.tree });
  if (caps.conversation && root) scopes.push({ kind: 'conversation', id: root, cap: caps.conversation });
  if (caps.tenant) scopes.push({ kind: 'tenant', cap: caps.tenant });
  return scopes;
}

export function ceilingOf({ tokens, usd }: Cap): Ceiling {
  return { tokens: tokens ?? null, microUsd: usd === undefined ? null : microUsdOf(usd) };
}

function microUsdOf(usd: number): number {
  return Math.round(usd * 1e6);
}

/** Key of a scope's account in the present period. Ids are slugs without slashes. */
export function budgetKey(scope: CappedScope, now: number): string {
  const name = scope.kind === 'tenant' ? scope.kind : `${scope.kind}/${scope.id}`;
  return `budget/${name}/${periodAt(scope.cap.per ?? 'ever', now)}`;
}

function periodAt(per: Period, now: number): string {
  if (per === 'ever') return per;
  return new Date(now).toISOString().slice(0, per === 'day' ? 10 : 7);
}

/** End of the present period, ms since the epoch. Null: never. */
export function periodEnd(per: Period, now: number): number | null {
  const at = new Date(now);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  if (per === 'day') return Date.UTC(year, month, at.getUTCDate() + 1);
  return per === 'month' ? Date.UTC(year, month + 1) : null;
}
