import type { Clock } from '../../clock.ts';
import { createView, foldEvent, foldSteps, type View } from '../../context/index.ts';
import type { ActorAddress, AgentId, Event } from '../../events/index.ts';
import { foldTask, newTaskBook, type TaskBook } from '../../machines/task-book.ts';
import { inSlices } from '../engine/in-slices.ts';
import { type PageSource, readPages } from './read-pages.ts';
import { createLogFolds, type LogFolds } from './log-folds.ts';

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

const KEPT = 16;
/** In tokens, which are some four bytes, with what a message takes beside its text: 100 MB or so. */
const MOST_TOKENS = 16_000_000;
const MESSAGE_TOKENS = 50;

/** Views of agents that are not at work: looking at a prompt twice folds its log once. By agent. */
export function createColdViews(
  source: PageSource,
  secretOf: (address: ActorAddress) => string,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
): LogFolds<Folded> {
  return createLogFolds<Folded>(source, {
    begin: ({ tenant, conversation }, name) => {
      const agent = name as AgentId;
      return { view: createView(agent, secretOf({ tenant, conversation, agent })), tasks: newTaskBook() };
    },
    fold({ view, tasks }, event) {
      foldTask(tasks, event);
      return foldInSlices(clock, view, event);
    },
    kept: KEPT,
    weigh: {
      of: ({ view }) => view.tokens + MESSAGE_TOKENS * view.slots.length,
      most: MOST_TOKENS,
    },
  });
}
