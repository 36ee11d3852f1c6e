import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import type { AgentId, ConversationId, TenantId } from '../../events/index.ts';
import type { Metrics } from '../../metrics.ts';
import type { Store } from '../../store/store.ts';
import { Account, type Amount, NEW_ACCOUNT, NOTHING, place, settle } from './account.ts';
import { type BudgetRefusal, refusalOf } from './refusal.ts';
import { createRegisters } from './registers.ts';
import { type BudgetCaps, cappedScopes, type CappedScope, ceilingOf, registerKey } from './scope.ts';

/**
 * What may still be spent, over all processes: an account per capped scope and period, in the store.
 *  L1  Paid + held <= cap whenever something is let through. So what is paid exceeds a cap by no more than calls cost
 *      beyond what was reserved for them.
 *  L2  A hold that is never settled counts in full, for ever: its call may have been paid.
 *  L3  Settled once: a second time changes nothing. The same hold again replaces the first.
 *  L4  Without a cap nothing is asked of the store, and nothing is counted.
 *  L5  A call that begins in one period and ends in the next is of the first.
 */
export interface BudgetLedger {
  readonly caps: BudgetCaps;
  /** Throws `store_unavailable`; `store_corrupt` for an account that cannot be read, as nobody knows what was spent. */
  reserve(place: BudgetPlace, hold: Amount & { id: string }): Promise<Reserved>;
  /** Never rejects: what cannot be written stays held. */
  settle(ticket: BudgetTicket, actual: Amount): Promise<void>;
  /** Nothing was asked of any model. */
  release(ticket: BudgetTicket): Promise<void>;
  look(tenant: TenantId, scope: CappedScope): Promise<Account>;
}

export interface BudgetPlace {
  tenant: TenantId;
  /** The conversation that the thread, and the thread it was opened in, began in. */
  root: ConversationId;
  agent: AgentId;
  /** Of a thread: what its task is counted with. */
  tree?: string;
}

/** Where a hold stands. */
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

/** Longer than any call, so that nothing has to renew it; being overdue only lets an account forget whose hold it was. */
export const HOLD_MS = 3_600_000;

export function createBudgetLedger(options: BudgetLedgerOptions): BudgetLedger {
  const { store, clock, random, metrics, onWarning, caps } = options;
  const onLost = () => metrics.count('budget_retries', {});
  const registers = createRegisters({ store, clock, random, parse, onLost });

  async function settleAll({ tenant, id, keys }: BudgetTicket, actual: Amount): Promise<void> {
    await Promise.all(
      keys.map(async (key) => {
        try {
          await registers.change(tenant, key, (account) => settle(account, id, actual));
        } catch (error) {
          onWarning(error, `${key}: what was held for a call stays held`);
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
        const key = registerKey(scope, now);
        const hold = { id, ...asked, until: now + HOLD_MS };
        const ceiling = ceilingOf(scope.cap);
        try {
          const placed = await registers.change(tenant, key, (account) =>
            place(account, hold, ceiling, clock.now()),
          );
          if (placed.ok) {
            keys.push(key);
            continue;
          }
          metrics.count('budget_refused', { tenant, scope: scope.kind });
          await settleAll({ tenant, id, keys }, NOTHING);
          return { ok: false, refusal: refusalOf(scope, { ...placed, asked }, now) };
        } catch (error) {
          await settleAll({ tenant, id, keys }, NOTHING);
          throw error;
        }
      }
      return { ok: true, ticket: { tenant, id, keys } };
    },
    settle: settleAll,
    release: (ticket) => settleAll(ticket, NOTHING),
    look: (tenant, scope) => registers.look(tenant, registerKey(scope, clock.now())),
  };
}

function parse(text: string | null, key: string): Account {
  if (text === null) return NEW_ACCOUNT;
  try {
    return Account.parse(JSON.parse(text));
  } catch (cause) {
    const message = `the account ${key} cannot be read, so nobody knows what was spent: repair it, or use a version that knows it`;
    throw new TroupeError('store_corrupt', message, { key }, { cause });
  }
}
