import type { Clock } from '../../clock.ts';
import { foldEvent, foldSteps, type View } from '../../context/index.ts';
import type { ActorAddress, Event } from '../../events/index.ts';
import { foldTask, type TaskBook } from '../../machines/task-book.ts';
import { inSlices } from '../engine/in-slices.ts';
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

type Ticking = Pick<Clock, 'monotonic' | 'sleep'>;

/**
 * `foldEvent` that gives the event loop back where a turn renders all that waited for it. For views that nobody else
 * holds: until it is done the view is not whole. Nothing to wait for with all other events, of which there are many.
 */
export function foldInSlices(clock: Ticking, view: View, event: Event): Promise<void> | undefined {
  if (event.kind === 'turn.started' || event.kind === 'turn.steered') {
    return inSlices(clock, foldSteps(view, event));
  }
  foldEvent(view, event);
  return undefined;
}

/** `catchUp` for a view that nobody else holds. */
export async function catchUpInSlices(
  { log, clock }: { log: PageSource; clock: Ticking },
  address: ActorAddress,
  { view, tasks }: Folded,
  upTo?: number,
): Promise<number> {
  for await (const events of readPages(log, address, { after: view.upTo, upTo })) {
    for (const event of events) {
      const folding = foldInSlices(clock, view, event);
      if (folding) await folding;
      foldTask(tasks, event);
    }
  }
  return view.upTo;
}
