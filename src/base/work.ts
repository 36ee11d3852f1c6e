import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The account that reads are charged to. The store charges them, so no route can forget to. Work without an account, such
 * as the turns of agents, is not charged.
 */
export interface WorkAccount {
  /** One unit per row, and one per KiB. A returned promise must be awaited before the work goes on. */
  charge(units: number): Promise<void> | undefined;
}

const accounts = new AsyncLocalStorage<WorkAccount>();

/** Charges everything that `run` begins to `account`, also asynchronous work. */
export function onAccount<T>(account: WorkAccount, run: () => T): T {
  return accounts.run(account, run);
}

/** Charges the present account. Await the result between two steps. */
export function chargeWork(rows: number, bytes: number): Promise<void> | undefined {
  return accounts.getStore()?.charge(rows + bytes / 1_024);
}

/** Whether there is an account. Without one the caller need not measure its work. */
export function isCharged(): boolean {
  return accounts.getStore() !== undefined;
}
