import type { Choice, Event, Quote } from '../../events/index.ts';
import { type Candidate, candidateSteps, joinUnits, type Unit } from './candidates.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { createPricing, type Kept, type Pricing, WHOLE_LEVEL, LEAST_LEVEL } from './pricing.ts';
import { isChatter, GOAL, CONSTRAINT, DECISION, DONE, PENDING, TODO_MARK } from './lexicon.ts';
import { errorLines, findWords } from './findings.ts';
import { countingWork } from '../budget/tokens.ts';

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
  all: readonly Candidate[],
  pricing: Pricing,
  options: ChooserOptions,
): Steps<Chooser> {
  const candidates = all.filter(saysSomething);
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
    quotes: ascending.map(
      ({ candidate: { seq, speaker, untrusted, pinned, by, replacedBy }, text, cut }) => ({
        seq,
        speaker,
        text,
        ...(cut && { cut }),
        ...(pinned && { pinned }),
        ...(by !== undefined && { by }),
        ...(replacedBy && { replacedBy }),
        ...(untrusted && { untrusted }),
      }),
    ),
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

/**
 * People's words within a share. All of them whole, if they fit. Otherwise mere acknowledgements leave; then the others
 * are shortened piece by piece, all to the same length of a piece; and only if even their shortest forms do not fit, the
 * least important messages leave, pinned ones last. More room never shows less: the order of messages, the lengths and
 * the groups do not depend on the share.
 */
function* keepWords(people: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const whole = yield* allAt(people, WHOLE_LEVEL, share, pricing);
  if (whole) return whole;
  const ranked = people.filter(isWorthKeeping).toSorted(byImportance);
  const large: Candidate[] = [];
  const others: Candidate[] = [];
  const newest = yield* newestOf(ranked, Math.floor(share * NEWEST_SHARE), pricing);
  for (const candidate of ranked.filter((each) => !newest.some((kept) => kept.candidate === each))) {
    const isLarge = pricing.roughly(candidate, LEAST_LEVEL) > LARGE_TOKENS;
    (isLarge ? large : others).push(candidate);
    yield pricing.work();
  }
  const forLarge = yield* neededFor(large, Math.floor(share * LARGE_SHARE), pricing);
  return [
    ...newest,
    ...(yield* shortened(large, forLarge, pricing)),
    ...(yield* shortened(others, share - forLarge - sum(newest), pricing)),
  ];
}

/** A person's last messages stay whole if that takes no more than this share: what they ask is under way. */
const NEWEST = 2;
const NEWEST_SHARE = 0.4;

function* newestOf(people: readonly Candidate[], most: number, pricing: Pricing): Steps<Kept[]> {
  const said = people.filter(({ pinned, replacedBy }) => pinned === undefined && replacedBy === undefined);
  const newest = said.toSorted((a, b) => b.seq - a.seq).slice(0, NEWEST);
  return (yield* allAt(newest, WHOLE_LEVEL, most, pricing)) ?? [];
}

/** Messages that are long even when each of their lines is short, as pasted logs are, share a part of their own. */
const LARGE_TOKENS = 400;
const LARGE_SHARE = 0.3;

/** Tokens of all of them whole, or `most` if these are more. */
function* neededFor(candidates: readonly Candidate[], most: number, pricing: Pricing): Steps<number> {
  let needed = 0;
  for (const candidate of candidates) {
    needed += pricing.at(candidate, WHOLE_LEVEL).tokens;
    yield pricing.work();
    if (needed >= most) break;
  }
  return Math.min(needed, most);
}

function* shortened(ranked: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const shortest = yield* mostThatFit(ranked, share, pricing);
  if (!shortest.isAll) return shortest.kept;
  let best = shortest.kept;
  let [fits, tooMuch] = [LEAST_LEVEL, WHOLE_LEVEL + 1];
  while (tooMuch - fits > 1) {
    const middle = Math.floor((fits + tooMuch) / 2);
    const forms = yield* allAt(ranked, middle, share, pricing);
    if (forms) [best, fits] = [forms, middle];
    else tooMuch = middle;
  }
  return best;
}

/** An agent's `Noted.` is worth no token, however much room there is. */
function saysSomething({ role, whole }: Candidate): boolean {
  return role !== 'reply' || !isChatter(whole);
}

function isWorthKeeping(candidate: Candidate): boolean {
  return candidate.pinned !== undefined || !isChatter(candidate.whole);
}

function byImportance(a: Candidate, b: Candidate): number {
  return rankOf(b) - rankOf(a) || b.seq - a.seq;
}

/** The request, then goals, then by score, and what was replaced. */
function rankOf({ pinned, replacedBy, scored }: Candidate): number {
  if (pinned === 'request') return Infinity;
  if (replacedBy !== undefined) return -Infinity;
  return pinned === 'goal' ? Number.MAX_SAFE_INTEGER : scored.score;
}

/** In their order, until one does not fit: its most important parts take the rest. */
function* mostThatFit(
  ranked: readonly Candidate[],
  share: number,
  pricing: Pricing,
): Steps<{ kept: Kept[]; isAll: boolean }> {
  const kept: Kept[] = [];
  let left = share;
  for (const candidate of ranked) {
    const form = pricing.at(candidate, LEAST_LEVEL);
    yield pricing.work();
    if (form.tokens > left) {
      const part = pricing.within(candidate, left);
      return { kept: part ? [...kept, part] : kept, isAll: false };
    }
    left -= form.tokens;
    kept.push(form);
  }
  return { kept, isAll: true };
}

/** Null if they exceed the share; counting stops there. */
function* allAt(
  candidates: readonly Candidate[],
  level: number,
  share: number,
  pricing: Pricing,
): Steps<Kept[] | null> {
  const kept: Kept[] = [];
  let left = share;
  for (const candidate of candidates) {
    const form = pricing.at(candidate, level);
    yield form.text.length + pricing.work();
    left -= form.tokens;
    if (left < 0) return null;
    kept.push(form);
  }
  return kept;
}

/** A part of a message, with its rank in a digest. */
interface Ranked {
  candidate: Candidate;
  /** Its place among the parts of the message. */
  at: number;
  unit: Unit;
  tokens: number;
}

/** Only the most promising parts are weighed against each other. */
const MOST_WEIGHED = 4_000;
const ROLE = { person: 1.5, key: 1.6, reply: 1.6, work: 0.6, system: 0.6 } as const;
/** Points for what a sentence is. */
const POINTS = {
  goal: 4,
  demand: 1.5,
  decision: 6,
  open: 2.5,
  error: 1.5,
  done: 1.5,
  call: 0.2,
  words: 0.3,
} as const;
/** Points for a name or number that nothing chosen before has shown, times how often it is used. */
const NAME = 0.8;
const NUMBER = 0.8;
const COMMAND = 1.6;
const WORD = 0.12;
/** Cost of weighing one part roughly, in characters. */
const WEIGHING = 8;
/** What the oldest message is worth beside the newest. */
const OLDEST = 0.2;
/** Added to the tokens of each part when it is weighed: speaker, number and joints. */
const FRAME_TOKENS = 8;

const NUMBERS =
  /(?<![\w.])[$€£¥#]?\d[\d.,:]*(?:%|\s?(?:[kKMG]?B|ms|s|h|min|px|lines?|tokens?|tests?|files?|days?|hours?|minutes?))?(?![\w])/g;
const LONG_WORD = /\p{L}{5,}/gu;

interface Weighed extends Ranked {
  base: number;
  factor: number;
  facts: Map<string, number>;
}

/**
 * The parts of messages in the order in which a digest takes them: each time the one that adds most per token to
 * what the parts before it say. The order does not depend on any budget, so more room never shows less. `shown` is what
 * stands beside the digest anyway.
 */
function* rankUnits(
  candidates: readonly Candidate[],
  { count, most, shown }: { count: (text: string) => number; most: number; shown: string },
): Steps<Ranked[]> {
  const uses = new Map<string, number>();
  const weighed: Weighed[] = [];
  for (const candidate of candidates) {
    const named = new Set<string>();
    for (const [at, unit] of candidate.units().entries()) {
      if (isChatter(unit.text)) continue;
      const facts = factsOf(unit);
      for (const fact of facts.keys()) named.add(fact);
      // What was decided holds until something else is, however long ago that was.
      const age = isDecision(unit) ? 0 : unit.isItem ? candidate.age / 2 : candidate.age;
      const factor = ROLE[candidate.role] * (OLDEST + (1 - OLDEST) * (1 - age) ** 2);
      weighed.push({ candidate, at, unit, tokens: 0, base: pointsOf(unit), factor, facts });
    }
    for (const fact of named) uses.set(fact, (uses.get(fact) ?? 0) + 1);
    yield candidate.whole.length + 64;
  }
  const covered = new Set(factsOf({ text: shown, heading: null, isCall: false }).keys());
  const rough = (each: Weighed) => gainOf(each, uses, covered) / (each.unit.text.length / 4 + FRAME_TOKENS);
  let best: Queued[] = [];
  for (let from = 0; from < weighed.length; from += MOST_WEIGHED) {
    const some = weighed.slice(from, from + MOST_WEIGHED).map((each) => ({ each, worth: rough(each) }));
    best = [...best, ...some].toSorted(byWorth).slice(0, MOST_WEIGHED);
    yield some.length * WEIGHING;
  }
  for (const { each } of best) {
    each.tokens = count(each.unit.text) + 1;
    yield countingWork(each.unit.text.length);
  }
  return yield* inOrder(
    best.map(({ each }) => each),
    uses,
    covered,
    most,
  );
}

/** Gains only fall as more is covered, so the first part whose gain is up to date is the best. */
function* inOrder(
  parts: readonly Weighed[],
  uses: ReadonlyMap<string, number>,
  covered: Set<string>,
  most: number,
): Steps<Ranked[]> {
  const worthOf = (each: Weighed) => gainOf(each, uses, covered) / (each.tokens + FRAME_TOKENS);
  const queue = parts.map((each) => ({ each, worth: worthOf(each) })).toSorted(byWorth);
  const ranked: Ranked[] = [];
  let left = most;
  while (queue.length > 0 && left > 0) {
    const [next] = queue.splice(0, 1);
    if (!next) break;
    const worth = worthOf(next.each);
    const second = queue[0];
    if (second && byWorth({ each: next.each, worth }, second) > 0) {
      queue.splice(placeOf(queue, { each: next.each, worth }), 0, { each: next.each, worth });
      yield 64;
      continue;
    }
    for (const fact of next.each.facts.keys()) covered.add(fact);
    const { candidate, at, unit, tokens } = next.each;
    ranked.push({ candidate, at, unit, tokens });
    left -= tokens;
    yield 256;
  }
  return ranked;
}

interface Queued {
  each: Weighed;
  worth: number;
}

function byWorth(a: Queued, b: Queued): number {
  return b.worth - a.worth || b.each.candidate.seq - a.each.candidate.seq || a.each.at - b.each.at;
}

function placeOf(queue: readonly Queued[], one: Queued): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (byWorth(queue[middle] as Queued, one) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function gainOf(
  { base, factor, facts }: Weighed,
  uses: ReadonlyMap<string, number>,
  covered: ReadonlySet<string>,
): number {
  let gain = 0;
  let fresh = 0;
  for (const [fact, points] of facts) {
    if (covered.has(fact)) continue;
    fresh += 1;
    gain += points * log2(1 + (uses.get(fact) ?? 1));
  }
  // Words that repeat what is shown already add little, whatever they are.
  const novelty = facts.size === 0 ? 1 : fresh / facts.size;
  return factor * (base * (0.2 + 0.8 * novelty) + gain);
}

/** More uses than this count no more. */
const MOST_BITS = 3;
const MAX_COMMAND = 80;

/** Whole numbers of bits, so that the order is the same on every machine. */
function log2(number: number): number {
  return Math.min(MOST_BITS, 31 - Math.clz32(number));
}

function isDecision({ text, isCall }: Unit): boolean {
  return !isCall && DECISION.test(text);
}

function pointsOf({ text, heading, isCall }: Unit): number {
  if (isCall) return POINTS.call + (errorLines(text).length > 0 ? POINTS.error : 0);
  const isOpen = PENDING.test(text) || TODO_MARK.test(text) || (heading !== null && PENDING.test(heading));
  return (
    POINTS.words +
    (GOAL.test(text) ? POINTS.goal : 0) +
    (CONSTRAINT.test(text) ? POINTS.demand : 0) +
    (DECISION.test(text) ? POINTS.decision : 0) +
    (isOpen ? POINTS.open : DONE.test(text) || text.includes('✅') ? POINTS.done : 0)
  );
}

/** What a part says, by the last part of a path and the words of a name, each with its points. */
function factsOf({ text, isCall }: Unit): Map<string, number> {
  const facts = new Map<string, number>();
  // A command that is used again and again is worth knowing, with what became of it last.
  if (isCall) facts.set(text.replace(/ -> .*$/s, '').slice(0, MAX_COMMAND), COMMAND);
  const { paths, ids, names } = findWords(text, true);
  for (const path of paths) facts.set(path.split(/[/\\]/).findLast((part) => part !== '') ?? path, NAME);
  for (const name of [...ids, ...names]) facts.set(name, NAME);
  for (const [number] of text.matchAll(NUMBERS)) if (number.length > 1) facts.set(number, NUMBER);
  for (const [word] of text.matchAll(LONG_WORD)) {
    const stem = word.toLowerCase().slice(0, 6);
    if (!facts.has(stem)) facts.set(stem, WORD);
  }
  return facts;
}
