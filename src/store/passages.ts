import type { IdRange } from './id-range.ts';

/**
 * The index of words: the terms that each range of events contains. Derived data, like standings. The process that stores
 * standings stores passages too, before the standing that takes their events into account. The store knows terms only, no
 * languages and no events.
 *  P1  A passage is a range of seqs of one log, identified by `first`. Only a passage that ends later or at the same seq
 *      replaces it.
 *  P2  If a log has a standing at seq N, its events up to N are in passages.
 *  P3  Passages are removed with their conversation, and storing one creates no conversation.
 *  P4  A passage is a hint: a search reads the events themselves, so words that were removed from the log are never shown.
 */
export interface Passage {
  /** Seq of its first event. */
  first: number;
  /** Seq of its last event. */
  last: number;
  /** Time of its last event, ms since the epoch. */
  at: number;
  /** The terms, each once, in lower case: letters, digits and the characters of `MARKS`. */
  terms: readonly string[];
}

/** Characters of terms besides letters and digits. */
export const MARKS = '@=_-.:';

/** A condition on terms. */
export interface TermCondition {
  /** The text, in lower case. */
  term: string;
  /** True: only this term. False: all terms that begin with it. */
  whole: boolean;
}

/** A search in the index of words. */
export interface PassagesQuery {
  /** Id of the tenant. */
  tenant: string;
  /** Conditions that must all hold; at least one. */
  terms: readonly TermCondition[];
  /** Minimum of `at`, ms since the epoch. */
  from?: number;
  /** Only ids of conversations within one of these ranges; default all. */
  ranges?: readonly IdRange[];
  /** Maximum passages. */
  limit: number;
  /** `place` of a passage. Only passages that follow it are returned. */
  after?: string;
}

/** A passage that meets a query. */
export interface FoundPassage extends Omit<Passage, 'terms'> {
  /** Id of the conversation. */
  id: string;
  /** Its position in the order, newest first. Pass it as `after`. */
  place: string;
}

/** Whether terms in memory meet a condition. */
export function hasTerm(terms: readonly string[], { term, whole }: TermCondition): boolean {
  return terms.some((each) => (whole ? each === term : each.startsWith(term)));
}
