import { foldEvent, type View } from '../context/index.ts';
import type { ActorAddress } from '../events/index.ts';
import { foldTask, type TaskBook } from '../machines/task-book.ts';
import { type PageSource, readPages } from './read-pages.ts';

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
  log: PageSource,
  address: ActorAddress,
  { view, tasks }: Folded,
  upTo?: number,
): Promise<number> {
  for await (const events of readPages(log, address, { after: view.upTo, upTo })) {
    for (const event of events) {
      foldEvent(view, event);
      foldTask(tasks, event);
    }
  }
  return view.upTo;
}
