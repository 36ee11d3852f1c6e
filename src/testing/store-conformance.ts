import type { StoreDriver } from '../store/driver.ts';
import type { ConformanceCase } from './conformance.ts';
import { ACTOR_CASES } from './store-actor-cases.ts';
import { DELETE_CASES } from './store-delete-cases.ts';
import { DUE_CASES } from './store-due-cases.ts';
import { LOG_CASES } from './store-log-cases.ts';
import { REGISTER_CASES } from './store-register-cases.ts';
import { storeCase } from './store-stage.ts';

/** What every store must do. `open` gives a driver of an empty store that no other case shares. */
export function storeConformance(open: () => Promise<StoreDriver>): ConformanceCase[] {
  const cases = [...LOG_CASES, ...ACTOR_CASES, ...DUE_CASES, ...REGISTER_CASES, ...DELETE_CASES];
  return cases.map((each) => storeCase(open, each));
}
