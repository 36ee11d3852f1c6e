import type { Clock } from '../../clock.ts';
import { createView } from '../../context/index.ts';
import type { ActorAddress, AgentId } from '../../events/index.ts';
import { foldTask, newTaskBook } from '../../machines/task-book.ts';
import { createLogFolds, type LogFolds } from './log-folds.ts';
import type { PageSource } from './read-pages.ts';
import { type Folded, foldInSlices } from './read-view.ts';

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
