import type { PromptMessage } from '../events/index.ts';

/** Of the vendors that cache explicitly, Anthropic takes the fewest. */
const MAX_BREAKPOINTS = 4;

export interface BreakpointInput {
  /** Messages in the prompt, the system message among them. All indexes are of that list. */
  count: number;
  /** The last message before this turn's input; null where no turn runs. */
  turnBegins: number | null;
  /** The message that holds the summary. */
  summaryEnds: number | null;
  /** The last message that the latest prune has rewritten. */
  frontier: number | null;
  /**
   * The message that the last request ended in; see `sentBefore`. Where it is not known, `turnBegins` stands in. In the
   * first request after a prune nothing behind the frontier before it is cached: then that frontier.
   */
  sent?: number | null;
}

/**
 * Where a provider with explicit caching is told to cache: the indexes of the messages after which a breakpoint stands,
 * ascending, at most four.
 *
 * A read looks back 20 blocks from a breakpoint and no further, and a step of many parallel calls adds more than that.
 * So besides the ends of the prompt the most wanted place is the very message that the last request ended in: what it
 * wrote is found there however much has come since. Then the frontier, which the next prune will leave as it is, and
 * the summary, which has the frontier behind it where there is one and is the first to go.
 */
export function breakpointsOf({ count, turnBegins, summaryEnds, frontier, sent }: BreakpointInput): number[] {
  if (count === 0) return [];
  const wanted = [0, count - 1, sent ?? turnBegins, frontier, summaryEnds];
  const places = new Set(
    wanted.filter((index) => index !== null).filter((index) => index >= 0 && index < count),
  );
  return [...places].slice(0, MAX_BREAKPOINTS).toSorted((a, b) => a - b);
}

/** The message that the last request ended in: its answer is the agent's latest words. */
export function sentBefore(messages: readonly PromptMessage[]): number | null {
  const answer = messages.findLastIndex(({ role }) => role === 'assistant');
  return answer > 0 ? answer - 1 : null;
}
