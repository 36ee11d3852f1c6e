import type { Choice, Event, Quote } from '../../events/index.ts';
import { type Candidate, candidateSteps, type Level, LEVELS } from './candidates.ts';
import { atOnce, type Steps } from '../steps.ts';
import { createPricing, type Kept, type Pricing } from './pricing.ts';

export interface ExtractionInput {
  events: readonly Event[];
  /** The compaction before; its quotes compete with the events since. */
  previous: { quotes: readonly Quote[] } | null;
  /** For all quotes together. */
  budget: number;
  count: (text: string) => number;
}

export interface Extraction {
  quotes: Quote[];
  chosen: Choice[];
  tokens: number;
}

/** What people said, the newest first, before anything else. */
const PEOPLE_SHARE = 0.6;
const MAX_PEOPLE_TOKENS = 20_000;
/** Delegations, questions, approvals, hand-overs, changes of mode. */
const KEY_SHARE = 0.25;
/** Of more, those with the highest scores are weighed against their length. */
const MOST_WEIGHED = 2_000;
/** What a short text costs beyond its words when it is weighed, or "Done!" would be worth more than any reason. */
const WEIGHT_OFFSET_TOKENS = 30;

/**
 * The messages worth keeping, found without a model: people's words and key events first, then whatever scores highest
 * for its length. Texts are whole where they fit. A function of its arguments, never over the budget.
 */
export function extractKeyMessages({ events, previous, budget, count }: ExtractionInput): Extraction {
  const candidates = atOnce(candidateSteps(events, previous?.quotes ?? [], count));
  return atOnce(choiceSteps(candidates, budget, createPricing(count)));
}

/** The choice among candidates that are listed already. */
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

/** By score per token; what does not fit as a preview may fit as what it comes to. */
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

/** Far above what text has for a token: longer texts need not be counted to be found too long. */
const CHARACTERS_PER_TOKEN = 16;

/** Room that is left over gives the best of the cut texts their length back. */
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

/** Rounds that are kept when nothing else can be. */
const LAST_ROUNDS = 4;
/** Where not all fits, one message may be quoted whole only up to this part of the share. */
const WHOLE_PART = 1 / 8;

/**
 * What must be kept, within a share. The first rung that holds it all:
 *   all whole; previews of the long ones; what the long ones come to; then the newest, as many as fit;
 *   where those do not reach back over the last rounds, these alone, each cut to an equal part; at last one alone.
 * Every rung is tried once, so that no text can make this go on.
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

/** Null where they are too many; counting stops there. */
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

/** From the newest on, up to the first that does not fit: nothing older is kept instead of it. */
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
