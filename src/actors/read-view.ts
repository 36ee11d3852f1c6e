import { foldEvent, type View } from '../context/index.ts';
import type { ActorAddress, Event } from '../events/index.ts';
import type { Store } from '../store/store.ts';

/** Events read at once while catching up. */
const PAGE = 2_000;

/**
 * Extends a view with what the log has beyond it, up to `upTo` (the head by default). Returns the seq reached.
 * The cost is in what is new, never in what the view holds already.
 */
export async function catchUp(
  store: Store,
  address: ActorAddress,
  view: View,
  upTo?: number,
): Promise<number> {
  for (;;) {
    const events = await readPage(store, address, view.upTo, upTo);
    for (const event of events) foldEvent(view, event);
    if (events.length < PAGE) return view.upTo;
  }
}

function readPage(store: Store, address: ActorAddress, after: number, upTo?: number): Promise<Event[]> {
  if (upTo !== undefined && after >= upTo) return Promise.resolve([]);
  return store.read(address, { after, limit: PAGE, ...(upTo !== undefined && { upTo }) });
}
