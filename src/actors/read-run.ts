import {
  type Directive,
  directiveOf,
  foldRun,
  newRunState,
  type RunState,
  type View,
} from '../context/index.ts';
import type { ActorAddress } from '../events/index.ts';
import type { Store } from '../store/store.ts';

/** Events read at once. */
const PAGE = 2_000;

/** How far the runs of a warm view are folded. Only conversations in run mode pay for it. */
const folded = new WeakMap<View, { upTo: number; state: RunState }>();

/** The directive in force where the view stands; null in another mode than `run`. */
export async function readRun(store: Store, address: ActorAddress, view: View): Promise<Directive | null> {
  if (view.mode !== 'run') return null;
  const fold = folded.get(view) ?? { upTo: 0, state: newRunState() };
  folded.set(view, fold);
  while (fold.upTo < view.upTo) {
    const range = { after: fold.upTo, upTo: view.upTo, limit: PAGE };
    const events = await store.read(address, range);
    for (const event of events) foldRun(fold.state, event);
    fold.upTo = events.length < PAGE ? view.upTo : (events.at(-1)?.seq ?? view.upTo);
  }
  return directiveOf(fold.state);
}
