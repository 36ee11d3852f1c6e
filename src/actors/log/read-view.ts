import type { Clock } from '../../base/clock.ts';
import { createView, foldEvent, foldOrBegin, type View } from '../../context/index.ts';
import type { ActorAddress, AgentId, Event, EventOf } from '../../events/index.ts';
import { foldTask, newTaskBook, type TaskBook } from '../../machines/task-book.ts';
import { inSlices } from '../engine/in-slices.ts';
import { readPages, type ViewSource } from './read-pages.ts';
import { createLogFolds, type LogFolds } from './log-folds.ts';

/** Folds of an actor's log: its view, and the tasks. Both are at the same seq. */
export interface Folded {
  view: View;
  tasks: TaskBook;
}

/**
 * Extends both folds up to `upTo`, by default the head of the log. Returns the seq reached. The cost depends on the new
 * events only.
 */
export async function catchUp(
  log: ViewSource,
  address: ActorAddress,
  { view, tasks }: Folded,
  upTo?: number,
): Promise<number> {
  const range = upTo === undefined ? {} : { upTo };
  for (let isLast = false; !isLast;) {
    const page = await log.readPage(address, { after: view.upTo, ...range });
    for (const event of page.events) {
      if (event.kind === 'baseline' && adoptsUnknown(view, event)) await supplyAdopted(log, view, event);
      foldEvent(view, event);
      foldTask(tasks, event);
    }
    isLast = page.isLast;
  }
  return view.upTo;
}

/** Whether an event adopts a compaction whose text the view lacks, because a checkpoint left it out. */
function adoptsUnknown({ compactions }: View, event: Event): event is EventOf<'baseline'> {
  const id = event.kind === 'baseline' ? event.body.adopts?.compaction : undefined;
  return id !== undefined && id !== null && !compactions.has(id);
}

/** Reads the text of an adopted compaction again, in its place before the ones that the view has. */
async function supplyAdopted(log: ViewSource, view: View, baseline: EventOf<'baseline'>): Promise<void> {
  const adopted = await log.readById(baseline, baseline.body.adopts?.compaction ?? '');
  if (adopted?.kind !== 'compaction' || adopted.seq > baseline.seq) return;
  view.compactions = new Map([[adopted.id, adopted.body], ...view.compactions]);
}

type Ticking = Pick<Clock, 'monotonic' | 'sleep'>;

/**
 * `foldEvent` in slices, for views that no one else uses: meanwhile the view is inconsistent. Only the events with which a
 * turn renders its inputs take long; for the many others there is no promise to wait for.
 */
export function foldInSlices(clock: Ticking, view: View, event: Event): Promise<void> | undefined {
  const steps = foldOrBegin(view, event);
  return steps && inSlices(clock, steps);
}

/** `catchUp` in slices, for a view that no one else uses. */
export async function catchUpInSlices(
  { log, clock }: { log: ViewSource; clock: Ticking },
  address: ActorAddress,
  { view, tasks }: Folded,
  upTo?: number,
): Promise<number> {
  for await (const events of readPages(log, address, { after: view.upTo, upTo })) {
    for (const event of events) {
      if (adoptsUnknown(view, event)) await supplyAdopted(log, view, event);
      const folding = foldInSlices(clock, view, event);
      if (folding) await folding;
      foldTask(tasks, event);
    }
  }
  return view.upTo;
}

const KEPT = 16;
/** About 100 MB: a token is some four bytes, and a message needs more than its text. */
const MOST_TOKENS = 16_000_000;
const MESSAGE_TOKENS = 50;

/** Views of agents that are not at work, named by agent. Inspecting a prompt again does not fold its log again. */
export function createColdViews(
  source: ViewSource,
  secretOf: (address: ActorAddress) => string,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  restore?: (address: ActorAddress) => Promise<Folded | null>,
): LogFolds<Folded> {
  return createLogFolds<Folded>(source, {
    async restore({ tenant, conversation }, name) {
      const folded = await restore?.({ tenant, conversation, agent: name as AgentId });
      return folded ? { state: folded, seq: folded.view.upTo } : null;
    },
    begin: ({ tenant, conversation }, name) => {
      const agent = name as AgentId;
      return { view: createView(agent, secretOf({ tenant, conversation, agent })), tasks: newTaskBook() };
    },
    fold({ view, tasks }, event) {
      foldTask(tasks, event);
      if (!adoptsUnknown(view, event)) return foldInSlices(clock, view, event);
      return supplyAdopted(source, view, event).then(() => foldInSlices(clock, view, event));
    },
    kept: KEPT,
    weigh: {
      of: ({ view }) => view.tokens + MESSAGE_TOKENS * view.slots.length,
      most: MOST_TOKENS,
    },
  });
}
