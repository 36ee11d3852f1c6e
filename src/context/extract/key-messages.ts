import type { Choice, Event, Quote } from '../../events/index.ts';
import { type Candidate, candidateSteps } from './candidates.ts';
import { atOnce, type Steps } from '../steps.ts';
import { allAt, keepWords, neededFor } from './keep-words.ts';
import { createPricing, type Kept, type Pricing } from './pricing.ts';
import { type Ranked, rankUnits } from './rank-units.ts';
import { WHOLE_LEVEL } from './shorten-words.ts';
import { joinUnits } from './units.ts';

interface ExtractionInput {
  events: readonly Event[];
  /** The previous compaction. Its quotes compete with newer events. */
  previous: { quotes: readonly Quote[] } | null;
  /** Tokens for all quotes together. */
  budget: number;
  count: (text: string) => number;
}

interface Extraction {
  quotes: Quote[];
  chosen: Choice[];
  tokens: number;
}

/** Share of people's words. What they leave goes to the digest of the others'. */
const PEOPLE_SHARE = 0.6;
const MAX_PEOPLE_TOKENS = 20_000;
/** In the smallest budgets their share would have no room for the first request. */
const LEAST_PEOPLE_TOKENS = 60;

/** The words worth keeping, chosen without a model. Deterministic, never over the budget, never less with more room. */
export function extractKeyMessages(input: ExtractionInput): Extraction {
  return atOnce(keyMessageSteps(input));
}

export function* keyMessageSteps({ events, previous, budget, count }: ExtractionInput): Steps<Extraction> {
  const candidates = yield* candidateSteps(events, previous?.quotes ?? [], { count });
  const choose = yield* chooserSteps(candidates, createPricing(count), {
    largest: budget,
    most: budget,
    shown: '',
  });
  return yield* choose(budget);
}

interface ChooserOptions {
  /** The largest budget that is chosen within. */
  largest: number;
  /** Tokens of the digest that may be wanted. */
  most: number;
  /** Stands beside the quotes anyway. */
  shown: string;
  peopleShare?: number;
  mostForPeople?: number;
  mostForOthers?: number;
}

type Chooser = (budget: number) => Steps<Extraction>;

/** Ranks the candidates once, to choose within any budget. */
export function* chooserSteps(
  candidates: readonly Candidate[],
  pricing: Pricing,
  options: ChooserOptions,
): Steps<Chooser> {
  const { largest, most, shown, mostForOthers = Infinity } = options;
  const { peopleShare = PEOPLE_SHARE, mostForPeople = Infinity } = options;
  const people = candidates.filter(({ role }) => role === 'person');
  const others = candidates.filter(({ role }) => role !== 'person');
  const needed = yield* neededFor(people, largest, pricing);
  // An upper bound, for which nothing is counted.
  const othersNeed = Math.ceil(others.reduce((total, { whole }) => total + whole.length / 2 + 40, 0));
  const newestFirst = others.toReversed();
  const ranked = yield* rankUnits(others, { count: pricing.count, most, shown });
  return function* choose(budget) {
    const whole = mostForOthers === Infinity ? yield* allAt(candidates, WHOLE_LEVEL, budget, pricing) : null;
    if (whole) return extractionOf(whole);
    // Either part of the budget grows with it.
    const part = Math.max(Math.floor(budget * peopleShare), Math.min(budget, LEAST_PEOPLE_TOKENS));
    const usual = Math.min(MAX_PEOPLE_TOKENS, part);
    const share = Math.min(needed, mostForPeople, Math.max(usual, budget - othersNeed));
    const kept = yield* keepWords(people, share, pricing);
    const rest = Math.min(budget - share, mostForOthers);
    return extractionOf([...kept, ...(yield* digest({ ranked, newestFirst }, rest, pricing))]);
  };
}

function extractionOf(kept: readonly Kept[]): Extraction {
  const ascending = kept.toSorted((a, b) => a.candidate.seq - b.candidate.seq);
  return {
    quotes: ascending.map(({ candidate: { seq, speaker, untrusted, pinned }, text, cut }) => ({
      seq,
      speaker,
      text,
      ...(cut && { cut }),
      ...(pinned && { pinned }),
      ...(untrusted && { untrusted }),
    })),
    chosen: ascending.map(({ candidate: { seq, scored } }) => ({ seq, ...scored })),
    tokens: sum(kept),
  };
}

/** The first parts in their order that fit, each message's on one line. If all fit, the newest messages are whole. */
function* digest(
  { ranked, newestFirst }: { ranked: readonly Ranked[]; newestFirst: readonly Candidate[] },
  budget: number,
  pricing: Pricing,
): Steps<Kept[]> {
  let [fits, tooMany] = [0, ranked.length + 1];
  let best: Kept[] = [];
  // The cost of joints and headings depends on the choice, so the whole is priced.
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    const lines = yield* linesOf(ranked.slice(0, middle), pricing);
    if (sum(lines) <= budget) [best, fits] = [lines, middle];
    else tooMany = middle;
  }
  return fits === ranked.length ? yield* wholeAgain(best, newestFirst, { budget, pricing }) : best;
}

/** Larger ones stay in excerpts: they are results. */
const MOST_WHOLE_TOKENS = 2_000;

function* wholeAgain(
  lines: readonly Kept[],
  newestFirst: readonly Candidate[],
  { budget, pricing }: { budget: number; pricing: Pricing },
): Steps<Kept[]> {
  const kept = new Map(lines.map((line) => [line.candidate, line]));
  let left = budget - sum(lines);
  for (const candidate of newestFirst) {
    const whole = pricing.at(candidate, WHOLE_LEVEL);
    yield pricing.work();
    if (whole.tokens > MOST_WHOLE_TOKENS) continue;
    const more = whole.tokens - (kept.get(candidate)?.tokens ?? 0);
    if (more > left) break;
    left -= more;
    kept.set(candidate, whole);
  }
  return [...kept.values()];
}

function sum(kept: readonly Kept[]): number {
  return kept.reduce((total, { tokens }) => total + tokens, 0);
}

function* linesOf(ranked: readonly Ranked[], pricing: Pricing): Steps<Kept[]> {
  const places = new Map<Candidate, number[]>();
  for (const { candidate, at } of ranked) {
    const chosen = places.get(candidate);
    if (chosen) chosen.push(at);
    else places.set(candidate, [at]);
  }
  const lines: Kept[] = [];
  for (const [candidate, chosen] of places) {
    const units = candidate.units();
    const ascending = chosen.toSorted((a, b) => a - b);
    lines.push(pricing.as(candidate, joinUnits(units, ascending)));
    yield candidate.whole.length + pricing.work();
  }
  return lines;
}
