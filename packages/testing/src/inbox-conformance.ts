import type { StoreDriver } from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';
import { PASSAGE_CASES } from './store-passage-cases.ts';
import { STANDING_CASES } from './store-standing-cases.ts';

/** The contract of the inbox of a store. `open` returns the driver of a new, empty store. */
export function inboxConformance(open: () => Promise<StoreDriver>): ConformanceCase[] {
  return [...STANDING_CASES, ...PASSAGE_CASES].map((each) => each(open));
}
