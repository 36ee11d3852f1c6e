import type { AgentId, ConversationId } from '../../events/index.ts';
import type { Ceiling } from './account.ts';

/** UTC, as the clock says; `ever` never ends. */
export type Period = 'day' | 'month' | 'ever';

export interface Cap {
  tokens?: number | undefined;
  usd?: number | undefined;
  per?: Period | undefined;
}

export interface BudgetCaps {
  tenant?: Cap | undefined;
  /** For each conversation, with all threads that began in it. */
  conversation?: Cap | undefined;
  /** For all that is delegated of one message of a person or a schedule. */
  tree?: Cap | undefined;
  /** For each of a tenant's agents, over all its conversations. */
  agents?: Record<string, Cap> | undefined;
}

export type Scope =
  | { kind: 'tenant' }
  | { kind: 'conversation'; id: ConversationId }
  /** By the conversation that it began in, and what it is counted with there. */
  | { kind: 'tree'; id: string }
  | { kind: 'agent'; id: AgentId };

export type CappedScope = Scope & { cap: Cap };

/** The scopes that have a cap, the narrowest first: what a refusal gives back was held where the fewest are disturbed. */
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

/** Where the account of a scope is in the present period. Ids are slugs and hold no slash. */
export function budgetKey(scope: CappedScope, now: number): string {
  const name = scope.kind === 'tenant' ? scope.kind : `${scope.kind}/${scope.id}`;
  return `budget/${name}/${periodAt(scope.cap.per ?? 'ever', now)}`;
}

function periodAt(per: Period, now: number): string {
  if (per === 'ever') return per;
  return new Date(now).toISOString().slice(0, per === 'day' ? 10 : 7);
}

/** When the present period is over, ms since the epoch; null: never. */
export function periodEnd(per: Period, now: number): number | null {
  const at = new Date(now);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  if (per === 'day') return Date.UTC(year, month, at.getUTCDate() + 1);
  return per === 'month' ? Date.UTC(year, month + 1) : null;
}
