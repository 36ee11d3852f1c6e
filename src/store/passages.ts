import type { IdRange } from './id-range.ts';

/**
 * The index of words: which terms a range of events contains. Derived data, like standings, and stored by the same reader,
 * before the standing that takes these events into account. The store knows neither languages nor events, only terms.
 *  P1  A passage is a range of seqs of one log; `first` identifies it. It is replaced by one that ends later, or as late.
 *  P2  The standing of a log at seq N means that its events up to N are in passages.
 *  P3  Passages are removed with their conversation, and none creates one.
 *  P4  A passage is a hint: who searches reads its events, so words that are gone from the log are never shown.
 */
export interface Passage {
  /** Seq of its first event. */
  first: number;
  /** Seq of its last event. */
  last: number;
  /** Time of its last event, ms since the epoch. */
  at: number;
  /** Each once, in lower case: letters, digits, and the marks of `MARKS`. */
  terms: readonly string[];
}

/** What terms contain beside letters and digits. */
export const MARKS = '@=_-.:';

/** A condition on terms. */
export interface TermCondition {
  /** In lower case. */
  term: string;
  /** Whether the term itself is sought, and not those that begin with it. */
  whole: boolean;
}

/** A search in the index of words. */
export interface PassagesQuery {
  /** Id of the tenant. */
  tenant: string;
  /** All of these hold; at least one. */
  terms: readonly TermCondition[];
  /** `at` is at least this, ms since the epoch. */
  from?: number;
  /** Only ids of conversations within one of these ranges; default all. */
  ranges?: readonly IdRange[];
  /** Most passages. */
  limit: number;
  /** `place` of a passage: only those that follow it. */
  after?: string;
}

/** A passage that meets a query. */
export interface FoundPassage extends Omit<Passage, 'terms'> {
  /** Id of the conversation. */
  id: string;
  /** Its position in the order: the newest first. */
  place: string;
}

/** Whether terms in memory meet a condition. */
export function hasTerm(terms: readonly string[], { term, whole }: TermCondition): boolean {
  return terms.some((each) => (whole ? each === term : each.startsWith(term)));
}
