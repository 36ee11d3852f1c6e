import type { Quote } from '../../events/index.ts';
import type { Candidate } from './candidates.ts';
import { countingWork } from '../tokens.ts';
import { atLevel, mostImportant, WHOLE_LEVEL } from './shorten-words.ts';

type Count = (text: string) => number;

/** A candidate as quoted, with its cost. */
export interface Kept {
  candidate: Candidate;
  text: string;
  cut: boolean;
  tokens: number;
}

export interface Pricing {
  count: Count;
  /** At a level of `atLevel`. */
  at: (candidate: Candidate, level: number) => Kept;
  /** Its most important parts within `tokens`; null if there is no room for any. */
  within: (candidate: Candidate, tokens: number) => Kept | null;
  /** As these words, which are a part of it. */
  as: (candidate: Candidate, text: string) => Kept;
  /** Its size at a level by the stored count of the whole, for choices that need no exact one. */
  roughly: (candidate: Candidate, level: number) => number;
  /** The work since it was last asked, in the characters of `Steps`. */
  work: () => number;
}

/** Shorter pieces say nothing. */
const MIN_PIECE_TOKENS = 16;

/** Brackets, number and colon of a quote on one line. */
const LINE_TOKENS = 6;
/** Brackets, number and fence of a longer quote: two keys of eight hexadecimal digits, which seldom share a token. */
const FENCED_TOKENS = 28;
/** The mark of an untrusted speaker. */
const RANK_TOKENS = 5;

/** What ends a line for some reader. */
const LINE_END = /[\n\r\v\f\u0085\u2028\u2029]/;

/** Whether a quote needs a fence: on one line nothing in it can pass for another speaker's line. */
export function isFenced(text: string): boolean {
  return LINE_END.test(text);
}

/** Cost of a quote in a prompt: its words, its speaker, and the marks around both. */
export function quoteTokens(
  { speaker, text, untrusted }: Pick<Quote, 'speaker' | 'text' | 'untrusted'>,
  count: Count,
): number {
  return (
    count(text) +
    count(speaker) +
    (isFenced(text) ? FENCED_TOKENS : LINE_TOKENS) +
    (untrusted ? RANK_TOKENS : 0)
  );
}

/** Counts each form of a text once, and not at all what was counted when it was stored. */
export function createPricing(counted: Count): Pricing {
  const known = new Map<Candidate, Map<number, Kept>>();
  let work = 0;
  const count: Count = (text) => {
    work += countingWork(text.length);
    return counted(text);
  };
  const price = (candidate: Candidate, text: string, cut: boolean): Kept => {
    const { speaker, untrusted, whole, tokens: stored } = candidate;
    const countOf = (words: string) => (words === whole && stored !== undefined ? stored : count(words));
    const tokens = quoteTokens({ speaker, text, ...(untrusted && { untrusted }) }, countOf);
    return { candidate, text, cut, tokens };
  };
  const shown = (candidate: Candidate, level: number): string => {
    work += candidate.whole.length;
    return shownAt(candidate, level);
  };
  const as = (candidate: Candidate, text: string): Kept =>
    price(candidate, text, candidate.isCut || text !== candidate.whole);
  return {
    count,
    as,
    at(candidate, level) {
      const forms = known.get(candidate) ?? new Map<number, Kept>();
      known.set(candidate, forms);
      const form = forms.get(level) ?? as(candidate, shown(candidate, level));
      forms.set(level, form);
      return form;
    },
    within(candidate, tokens) {
      const { speaker, untrusted, whole } = candidate;
      const frame = quoteTokens({ speaker, text: '\n', ...(untrusted && { untrusted }) }, count);
      if (tokens - frame < MIN_PIECE_TOKENS) return null;
      const text = mostImportant(whole, tokens - frame, count);
      return text === null ? null : as(candidate, text);
    },
    roughly(candidate, level) {
      const { length } = shown(candidate, level);
      const { whole, tokens: stored } = candidate;
      return Math.ceil(stored === undefined ? length / 4 : (stored * length) / Math.max(1, whole.length));
    },
    work() {
      const done = work;
      work = 0;
      return done;
    },
  };
}

/** A pinned message keeps several times the length of others. */
const PINNED_LEVELS = 16;

function shownAt({ whole, pinned }: Candidate, level: number): string {
  const most = pinned ? Math.min(WHOLE_LEVEL, level + PINNED_LEVELS) : level;
  return most === WHOLE_LEVEL ? whole : atLevel(whole, most);
}
