import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * On whose account something is read. A request's work is charged where it is done, in the store, so that no route can
 * forget to; whoever does it on nobody's account, as the turns of agents, is not charged.
 */
export interface WorkAccount {
  /** One unit for a row, one for each KiB. A promise where the work has to wait before it goes on. */
  charge(units: number): Promise<void> | undefined;
}

const accounts = new AsyncLocalStorage<WorkAccount>();

/** What `run` begins is charged to `account`, wherever it goes on. */
export function onAccount<T>(account: WorkAccount, run: () => T): T {
  return accounts.run(account, run);
}

/** To be awaited between two steps. */
export function chargeWork(rows: number, bytes: number): Promise<void> | undefined {
  return accounts.getStore()?.charge(rows + bytes / 1_024);
}

/** Whether somebody pays: measuring what costs nothing would cost something. */
export function isCharged(): boolean {
  return accounts.getStore() !== undefined;
}
