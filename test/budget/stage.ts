import { type BudgetAccounts, createBudgetAccounts } from '../../src/actors/features/budget/accounts.ts';
import type { BudgetCaps } from '../../src/actors/attempt/feature-types.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { AgentId, ConversationId, TenantId } from '../../src/events/index.ts';
import { type Metrics, NO_METRICS } from '../../src/events/metrics.ts';
import { createStore } from '../../src/store/create-store.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import type { Store } from '../../src/store/store.ts';

export const ACME = 'acme' as TenantId;
export const NEW_YEAR = Date.UTC(2026, 0, 1);

export function placeOf(agent = 'writer', root = 'talk', tenant = 'acme') {
  return { tenant: tenant as TenantId, root: root as ConversationId, agent: agent as AgentId };
}

/** A clock that a test sets; sleeps end at once. */
export interface SetClock extends Clock {
  set(ms: number): void;
}

export function setClock(start = NEW_YEAR): SetClock {
  let now = start;
  return {
    now: () => now,
    monotonic: () => now,
    sleep: () => new Promise((resolve) => void setImmediate(resolve)),
    set: (ms) => void (now = ms),
  };
}

export type KeyValue = Pick<Store, 'get' | 'compareAndSet'>;

export interface CountedNotes extends KeyValue {
  reads: number;
  writes: number;
}

/** Counts the calls of a store, and delays each answer a little, like a network. */
export function counted(store: KeyValue): CountedNotes {
  const later = () => new Promise((resolve) => void setImmediate(resolve));
  return {
    reads: 0,
    writes: 0,
    async get(...args) {
      this.reads += 1;
      await later();
      return store.get(...args);
    },
    async compareAndSet(...args) {
      this.writes += 1;
      await later();
      return store.compareAndSet(...args);
    },
  };
}

/** Empty stores of real adapters. */
export const STORES: readonly (readonly [name: string, open: () => Promise<Store>])[] = [
  ['sqlite', async () => createStore(await openSqliteDriver({ path: ':memory:' }))],
  [
    'documents',
    () =>
      Promise.resolve(
        createStore(
          createDocumentDriver(createMemoryDocuments(), {
            random: Math.random,
            sleep: () => Promise.resolve(),
          }),
        ),
      ),
  ],
];

export interface LedgerParts {
  clock?: Clock;
  random?: () => number;
  metrics?: Metrics;
  warnings?: string[];
}

export function accountsOn(
  store: KeyValue,
  caps: BudgetCaps,
  { clock = setClock(), random = Math.random, metrics = NO_METRICS, warnings = [] }: LedgerParts = {},
): BudgetAccounts {
  const onWarning = (error: unknown, where: string) => void warnings.push(`${where}: ${String(error)}`);
  return createBudgetAccounts({ store, clock, random, metrics, onWarning, caps });
}
