import type { FoundPassage, Passage, PassagesQuery } from './passages.ts';
import type {
  NewStanding,
  StandingCounts,
  StandingFilter,
  StandingPage,
  StandingsQuery,
} from './standings.ts';

/**
 * What only the inbox and the inspector store and read: where each conversation stands, see `standings.ts`, and the index of words,
 * see `passages.ts`. All of it follows from the logs, and no turn needs it. Proved by `testing/inbox-conformance.ts`.
 */
export interface InboxDriver {
  /** Stores where a conversation stands; changes nothing if that is known for a later seq. */
  saveStanding(log: { tenant: string; conversation: string }, standing: NewStanding): Promise<void>;
  /** Seq of the stored standing; 0: none. */
  standingSeq(log: { tenant: string; conversation: string }): Promise<number>;
  /** Removes the standing and the passages of a conversation: whoever stores standings makes them again. */
  forget(log: { tenant: string; conversation: string }): Promise<void>;
  /** One page. A conversation whose standing is not stored meanwhile is in exactly one page. */
  standings(query: StandingsQuery): Promise<StandingPage>;
  /** Counts the standings that pass the filter; `behind` only by tenant and ranges. */
  countStandings(filter: StandingFilter): Promise<StandingCounts>;
  /** Ids of conversations with events that their standing does not take into account, the newest first. */
  behind(query: { tenant: string; limit: number }): Promise<string[]>;
  /** Stores passages of a conversation. */
  savePassages(log: { tenant: string; conversation: string }, passages: readonly Passage[]): Promise<void>;
  /** The newest first, at most `limit`. */
  findPassages(query: PassagesQuery): Promise<FoundPassage[]>;
}
