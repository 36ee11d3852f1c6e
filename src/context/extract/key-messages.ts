import type { Choice, Event, Quote } from '../../events/index.ts';
import { type Candidate, candidateSteps, type Level, LEVELS } from './candidates.ts';
import { atOnce, type Steps } from '../steps.ts';
import { createPricing, type Kept, type Pricing } from './pricing.ts';

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

/** Share of people's words, newest first, before anything else. */
const PEOPLE_SHARE = 0.6;
const MAX_PEOPLE_TOKENS = 20_000;
/** Share of delegations, questions, approvals, handoffs and changes of mode. */
const KEY_SHARE = 0.25;
/** Only the highest scores are weighed by length. */
const MOST_WEIGHED = 2_000;
/** Added to the tokens of every text when it is weighed. Without it "Done!" would outweigh any reason. */
const WEIGHT_OFFSET_TOKENS = 30;

/**
 * The messages worth keeping, chosen without a model: people's words and key events first, then the highest score per
 * length. Texts stay whole where they fit. Deterministic, never over the budget.
 */
export function extractKeyMessages({ events, previous, budget, count }: ExtractionInput): Extraction {
  const candidates = atOnce(candidateSteps(events, previous?.quotes ?? [], count));
  return atOnce(choiceSteps(candidates, budget, createPricing(count)));
}

/** Chooses among listed candidates. */
export function* choiceSteps(
  candidates: readonly Candidate[],
  budget: number,
  pricing: Pricing,
): Steps<Extraction> {
  const chosen = yield* choose(candidates, budget, pricing);
  const kept = chosen.toSorted((a, b) => a.candidate.seq - b.candidate.seq);
  return {
    quotes: kept.map(({ candidate: { seq, speaker, untrusted }, text, cut }) => ({
      seq,
      speaker,
      text,
      ...(cut && { cut }),
      ...(untrusted && { untrusted }),
    })),
    chosen: kept.map(({ candidate: { seq, scored } }) => ({ seq, ...scored })),
    tokens: sum(kept),
  };
}

function* choose(candidates: readonly Candidate[], budget: number, pricing: Pricing): Steps<Kept[]> {
  const whole = yield* allAt(candidates, 'whole', budget, pricing);
  if (whole) return whole;
  const people = candidates.filter(({ role }) => role === 'person');
  const keys = candidates.filter(({ role }) => role === 'key');
  const peopleShare = Math.min(MAX_PEOPLE_TOKENS, Math.floor(budget * PEOPLE_SHARE));
  const must = [
    ...(yield* keepNewest(people, peopleShare, pricing)),
    ...(yield* keepNewest(keys, Math.floor(budget * KEY_SHARE), pricing)),
  ];
  const taken = new Set(must.map(({ candidate }) => candidate));
  const rest = candidates.filter((candidate) => !taken.has(candidate));
  const chosen = [...must, ...(yield* fillByWorth(rest, budget - sum(must), pricing))];
  return restore(chosen, budget - sum(chosen), pricing);
}

/** Keeps the candidates with the highest score per token, as previews or, if these do not fit, as gists. */
function* fillByWorth(candidates: readonly Candidate[], budget: number, pricing: Pricing): Steps<Kept[]> {
  const best = candidates.toSorted((a, b) => b.scored.score - a.scored.score || b.seq - a.seq);
  const weighed: { candidate: Candidate; worth: number }[] = [];
  for (const candidate of best.slice(0, MOST_WEIGHED)) {
    const form = pricing.at(candidate, 'preview');
    weighed.push({ candidate, worth: worthOf(form) });
    yield form.text.length;
  }
  const ranked = weighed.toSorted((a, b) => b.worth - a.worth || b.candidate.seq - a.candidate.seq);
  const kept: Kept[] = [];
  let left = budget;
  for (const { candidate } of ranked) {
    const form = (['preview', 'gist'] as const)
      .map((level) => pricing.at(candidate, level))
      .find(({ tokens }) => tokens <= left);
    if (!form) continue;
    left -= form.tokens;
    kept.push(form);
  }
  return kept;
}

function worthOf({ candidate, tokens }: Kept): number {
  return candidate.scored.score / (tokens + WEIGHT_OFFSET_TOKENS);
}

/** Far more than any text has per token: longer texts are too long without counting. */
const CHARACTERS_PER_TOKEN = 16;

/** Spends leftover room on the best shortened texts. */
function restore(kept: readonly Kept[], room: number, pricing: Pricing): Kept[] {
  let left = room;
  const longer = new Map<Candidate, Kept>();
  const cut = kept.filter((form) => form.cut);
  for (const form of cut.toSorted((a, b) => worthOf(b) - worthOf(a) || b.candidate.seq - a.candidate.seq)) {
    const { candidate } = form;
    const most = form.tokens + left;
    const better = LEVELS.filter((level) => candidate.text(level).length <= most * CHARACTERS_PER_TOKEN)
      .map((level) => pricing.at(candidate, level))
      .find(({ tokens }) => tokens <= most);
    if (!better || better.tokens <= form.tokens) continue;
    left -= better.tokens - form.tokens;
    longer.set(candidate, better);
  }
  return kept.map((form) => longer.get(form.candidate) ?? form);
}

function sum(kept: readonly Kept[]): number {
  return kept.reduce((total, { tokens }) => total + tokens, 0);
}

/** Rounds kept when nothing else fits. */
const LAST_ROUNDS = 4;
/** If not everything fits, a message may be quoted whole only up to this part of the share. */
const WHOLE_PART = 1 / 8;

/**
 * Keeps candidates within a share, by the first rule that fits:
 *   all whole; all as previews; all as gists; then the newest, as many as fit; if those do not cover the last rounds,
 *   only these, each cut to an equal part; at last one alone.
 * Each rule is tried once, so the work is bounded.
 */
function* keepNewest(candidates: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const newest = candidates.toSorted((a, b) => b.seq - a.seq);
  for (const level of LEVELS) {
    const kept = yield* allAt(newest, level, share, pricing);
    if (kept) return kept;
  }
  const fitting = yield* fill(newest, share, pricing);
  const recent = newest.filter(({ round }) => round <= LAST_ROUNDS);
  if (fitting.length >= recent.length) return fitting;
  const part = Math.floor(share / recent.length);
  const pieces = recent.flatMap((candidate) => pricing.within(candidate, part) ?? []);
  if (pieces.length === recent.length) return pieces;
  return newest.slice(0, 1).flatMap((candidate) => pricing.within(candidate, share) ?? []);
}

/** Null if they exceed the share; counting stops there. */
function* allAt(
  candidates: readonly Candidate[],
  level: Level,
  share: number,
  pricing: Pricing,
): Steps<Kept[] | null> {
  const kept: Kept[] = [];
  let left = share;
  for (const candidate of candidates) {
    const form = pricing.at(candidate, level);
    yield form.text.length;
    left -= form.tokens;
    if (left < 0) return null;
    kept.push(form);
  }
  return kept;
}

/** From the newest to the first that does not fit. Nothing older takes its place. */
function* fill(newest: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const fitting: Kept[] = [];
  let left = share;
  for (const candidate of newest) {
    const forms = LEVELS.map((level) => pricing.at(candidate, level));
    yield forms[0]?.text.length ?? 0;
    const kept = forms.find(({ tokens }) => tokens <= share * WHOLE_PART) ?? forms.at(-1);
    if (!kept || kept.tokens > left) break;
    left -= kept.tokens;
    fitting.push(kept);
  }
  return fitting;
}
