import * as z from 'zod';
import type { Clock } from '../../../base/clock.ts';
import { TroupeError } from '../../../base/errors.ts';
import type { AgentId, ConversationId, TenantId } from '../../../events/index.ts';
import type { Metrics } from '../../../events/metrics.ts';
import type { Store } from '../../../store/store.ts';
import { Amount, NOTHING, toCount } from '../../attempt/call-cost.ts';
import type { BudgetCaps, Cap, Period } from '../../attempt/feature-types.ts';
import { createEntries } from '../../actor/shared-entries.ts';

/**
 * The budgets of all processes: one account per capped scope and period, in the store.
 *  L1  Whenever a call is allowed, spent + held <= cap. Spending exceeds a cap only by what calls cost beyond their
 *      reservation.
 *  L2  A hold that is never settled counts in full for ever, because its call may have been paid.
 *  L3  Settling twice changes nothing. A hold with the same id replaces the first.
 *  L4  Without a cap the store is not read, and nothing is counted.
 *  L5  A call belongs to the period in which it begins.
 */
export interface BudgetAccounts {
  readonly caps: BudgetCaps;
  /** Reserves a call. Throws `store_unavailable`, and `store_corrupt` for an unreadable account. */
  reserve(place: BudgetPlace, hold: Amount & { id: string }): Promise<Reserved>;
  /** Settles a hold. Never rejects: if it cannot be written, the amount stays held. */
  settle(ticket: BudgetTicket, actual: Amount): Promise<void>;
  /** Releases a hold whose call was not made. */
  release(ticket: BudgetTicket): Promise<void>;
  look(tenant: TenantId, scope: CappedScope): Promise<Account>;
}

export interface BudgetPlace {
  tenant: TenantId;
  /** Id of the root conversation of the threads. */
  root: ConversationId;
  agent: AgentId;
  /** Counter of the task tree, in a thread. */
  tree?: string;
}

/** A hold and the accounts that have it. */
export interface BudgetTicket {
  tenant: TenantId;
  id: string;
  keys: readonly string[];
}

export type Reserved = { ok: true; ticket: BudgetTicket } | { ok: false; refusal: BudgetRefusal };

interface BudgetAccountsOptions {
  store: Pick<Store, 'get' | 'compareAndSet'>;
  clock: Clock;
  random: () => number;
  metrics: Metrics;
  onWarning: (error: unknown, where: string) => void;
  caps: BudgetCaps;
}

/** Lifetime of a hold, ms: longer than any call, so holds are never renewed. An overdue hold counts as spent. */
export const HOLD_MS = 3_600_000;

export function createBudgetAccounts(options: BudgetAccountsOptions): BudgetAccounts {
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

/** The refusal of a call, with the exhausted budget and its amounts. */
export interface BudgetRefusal {
  scope: Scope;
  /** The unit that is exhausted. */
  of: 'tokens' | 'usd';
  cap: Ceiling;
  spent: Amount;
  held: Amount;
  asked: Amount;
  /** Whether the cap is exceeded only because of running calls, so that there may be room when they end. */
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
  const setting = scope.kind === 'tree' ? null : `${pathOf(scope)}.${of}`;
  const end = periodEnd(cap.per ?? 'ever', now);
  const tooLarge = !fits(asked, ceiling);
  const message = [
    `the budget of ${nameOf(scope)} does not allow another model call: ${limit}${PER[cap.per ?? 'ever']}${setting === null ? '' : ` (${setting})`}`,
    `${show(spent)} spent, ${show(held)} held by calls under way, and this call may take ${show(asked)}`,
    setting === null
      ? 'a message of a person begins a new count'
      : tooLarge
        ? `one call alone is more than the cap: raise ${setting} in the agents file, or lower maxOutputTokens`
        : `raise ${setting} in the agents file${end === null ? '' : `, or wait until ${new Date(end).toISOString().slice(0, 16)}Z`}, then ask again`,
  ].join('. ');
  return { scope, of, cap: ceiling, spent, held, asked, isHeld: fits(add(spent, asked), ceiling), message };
}

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

/** The spent amount of one budget, and the holds of its running calls. */
export const Account = z.strictObject({
  spent: Amount,
  held: z.record(z.string(), Amount.extend({ until: z.int() })),
});
export type Account = z.infer<typeof Account>;

const NEW_ACCOUNT: Account = { spent: NOTHING, held: {} };

/** The cap of an account. Null: no limit. */
interface Ceiling {
  tokens: number | null;
  microUsd: number | null;
}

interface Hold extends Amount {
  id: string;
  /** Time after which the held amount counts as spent, ms since the epoch. */
  until: number;
}

type Placed = { ok: true } | { ok: false; spent: Amount; held: Amount };

/** The account after a change. An unchanged one is the same object. */
interface Change<R> {
  state: Account;
  result: R;
}

function add(a: Amount, b: Amount): Amount {
  return { tokens: toCount(a.tokens + b.tokens), microUsd: toCount(a.microUsd + b.microUsd) };
}

export function heldIn({ held }: Account): Amount {
  return Object.values(held).reduce<Amount>(add, NOTHING);
}

function fits({ tokens, microUsd }: Amount, ceiling: Ceiling): boolean {
  return tokens <= (ceiling.tokens ?? Infinity) && microUsd <= (ceiling.microUsd ?? Infinity);
}

/** Refuses a hold if spent, held and requested amounts together exceed the ceiling. Replaces an earlier hold of the same id. */
function holdAmount(account: Account, { id, ...hold }: Hold, ceiling: Ceiling, now: number): Change<Placed> {
  const settled = withoutOverdue(account, now);
  const { [id]: _, ...others } = settled.held;
  const { spent } = settled;
  const held = heldIn({ spent, held: others });
  if (!fits(add(add(spent, held), hold), ceiling))
    return { state: account, result: { ok: false, spent, held } };
  return { state: { spent, held: { ...others, [id]: hold } }, result: { ok: true } };
}

/** Replaces a hold by the cost of its call. A missing hold was settled before. */
function settle(account: Account, id: string, { tokens, microUsd }: Amount): Change<void> {
  const { [id]: hold, ...held } = account.held;
  if (!hold) return { state: account, result: undefined };
  return { state: { spent: add(account.spent, { tokens, microUsd }), held }, result: undefined };
}

/** Counts overdue holds as spent, because their calls may have been paid. */
export function withoutOverdue(account: Account, now: number): Account {
  const overdue = Object.entries(account.held).filter(([, { until }]) => until <= now);
  return overdue.reduce((left, [id, hold]) => settle(left, id, hold).state, account);
}

/** What an account is for. Periods are in UTC; `ever` never ends. */
type Scope =
  | { kind: 'tenant' }
  | { kind: 'conversation'; id: ConversationId }
  /** `id`: the root conversation and the counter that the tree has there. */
  | { kind: 'tree'; id: string }
  | { kind: 'agent'; id: AgentId };

export type CappedScope = Scope & { cap: Cap };

/** The scopes with a cap. The narrowest comes first, so that holds which a refusal releases affect the fewest calls. */
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
function budgetKey(scope: CappedScope, now: number): string {
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
