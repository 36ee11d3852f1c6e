import type { Quote } from '../../events/index.ts';
import type { Candidate, Level } from './candidates.ts';
import { headTail } from './cut-text.ts';

type Count = (text: string) => number;

/** A candidate as quoted, with its cost. */
export interface Kept {
  candidate: Candidate;
  text: string;
  cut: boolean;
  tokens: number;
}

export interface Pricing {
  at: (candidate: Candidate, level: Level) => Kept;
  /** Head and tail within `tokens`; null if too short to be useful. */
  within: (candidate: Candidate, tokens: number) => Kept | null;
}

/** Shorter pieces say nothing. */
const MIN_PIECE_TOKENS = 40;

/** Brackets, number and fence of a quote: two keys of eight hexadecimal digits, which seldom share a token. */
const FENCED_TOKENS = 28;
/** The mark of an untrusted speaker. */
const RANK_TOKENS = 5;

/** Cost of a quote in a prompt: its words, its speaker, and the marks around both. */
export function quoteTokens(
  { speaker, text, untrusted }: Pick<Quote, 'speaker' | 'text' | 'untrusted'>,
  count: Count,
): number {
  return count(text) + count(speaker) + FENCED_TOKENS + (untrusted ? RANK_TOKENS : 0);
}

/** Counts each form of a text once. */
export function createPricing(count: Count): Pricing {
  const known = new Map<Candidate, Map<Level, Kept>>();
  const price = (candidate: Candidate, text: string, cut: boolean): Kept => {
    const { speaker, untrusted } = candidate;
    const tokens = quoteTokens({ speaker, text, ...(untrusted && { untrusted }) }, count);
    return { candidate, text, cut, tokens };
  };
  return {
    at(candidate, level) {
      const forms = known.get(candidate) ?? new Map<Level, Kept>();
      known.set(candidate, forms);
      const form = forms.get(level) ?? price(candidate, ...shownAt(candidate, level));
      forms.set(level, form);
      return form;
    },
    within(candidate, tokens) {
      const room = tokens - quoteTokens({ speaker: candidate.speaker, text: '' }, count);
      const [whole] = shownAt(candidate, 'whole');
      const text = room < MIN_PIECE_TOKENS ? '' : headTail(whole, room, count);
      return text === '' ? null : price(candidate, text, candidate.isCut || text !== whole);
    },
  };
}

/** Falls back to the whole text if there is no shorter form. */
function shownAt(candidate: Candidate, level: Level): [text: string, cut: boolean] {
  const whole = candidate.text('whole');
  const text = level === 'whole' ? whole : candidate.text(level) || whole;
  return [text, candidate.isCut || text !== whole];
}
