import type { Event } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';

/** Something that may have happened in a conversation. Made by `said`, `called` and their like. */
export interface Moment {
  /** What is looked for, as a half sentence: `billing asks dana "Refund it?"`. */
  readonly words: string;
  /** The events at which it happened, in the order of the run. */
  find(run: ConversationRun): readonly Event[];
  /** Events that come close, shown if it did not happen. */
  near(run: ConversationRun): readonly Event[];
}

/** Which occurrences count, and how many are expected. */
export interface Often {
  /** Exactly so many. Default: at least one. */
  times?: number | undefined;
  /** Only those in the turn of this number of its agent, from 1. Default: all. */
  turn?: number | undefined;
}

/**
 * A moment that is an event: `isIt` decides. The events for which the first of `near` holds come close; if there are none, those of
 * the next, and so on.
 */
export function momentOf(
  words: string,
  isIt: (event: Event, run: ConversationRun) => boolean,
  ...near: readonly ((event: Event) => boolean)[]
): Moment {
  return {
    words,
    find: (run) => run.events.filter((event) => isIt(event, run)),
    near: ({ events }) => near.map((isNear) => events.filter(isNear)).find((found) => found.length > 0) ?? [],
  };
}
