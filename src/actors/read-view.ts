import { foldEvent, type View } from '../context/index.ts';
import type { ActorAddress, Event } from '../events/index.ts';
import type { ConversationLog } from './conversation-log.ts';

/** Events read at once while catching up. */
const PAGE = 2_000;

/**
 * Extends a view with what the log has beyond it, up to `upTo` (the head by default). Returns the seq reached.
 * The cost is in what is new, never in what the view holds already.
 */
export async function catchUp(
  log: Pick<ConversationLog, 'read'>,
  address: ActorAddress,
  view: View,
  upTo?: number,
): Promise<number> {
  for (;;) {
    const events = await readPage(log, address, view.upTo, upTo);
    for (const event of events) foldEvent(view, event);
    if (events.length < PAGE) return view.upTo;
  }
}

function readPage(
  log: Pick<ConversationLog, 'read'>,
  address: ActorAddress,
  after: number,
  upTo?: number,
): Promise<readonly Event[]> {
  if (upTo !== undefined && after >= upTo) return Promise.resolve([]);
  return log.read(address, { after, limit: PAGE, ...(upTo !== undefined && { upTo }) });
}
