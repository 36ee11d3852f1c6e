import { foldEvent, type View } from '../context/index.ts';
import type { ActorAddress, Event } from '../events/index.ts';
import { foldTask, type TaskBook } from '../machines/task-book.ts';
import type { ConversationLog } from './conversation-log.ts';

/** Events read at once while catching up. */
const PAGE = 2_000;

/** What an actor has folded of its log: what it sees, and who waits for what. Both stand at the same seq. */
export interface Folded {
  view: View;
  tasks: TaskBook;
}

/**
 * Extends both with what the log has beyond them, up to `upTo` (the head by default). Returns the seq reached.
 * The cost is in what is new, never in what they hold already.
 */
export async function catchUp(
  log: Pick<ConversationLog, 'read'>,
  address: ActorAddress,
  { view, tasks }: Folded,
  upTo?: number,
): Promise<number> {
  for (;;) {
    const events = await readPage(log, address, view.upTo, upTo);
    for (const event of events) {
      foldEvent(view, event);
      foldTask(tasks, event);
    }
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
