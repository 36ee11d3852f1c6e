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
  budget: number;
  count: (text: string) => number;
}

interface Extraction {
  quotes: Quote[];
  chosen: Choice[];
  tokens: number;
}

/** Share of people's words. What they do not use goes to the digest of the others' words. */
const PEOPLE_SHARE = 0.6;
/** Maximum share of people's remarks that tell nothing, if others need the room. */
const REMARKS_SHARE = 0.2;
/** The part of people's share that stays theirs if decisions of agents need more than what is left. */
const LEAST_BESIDE_DECISIONS = 0.6;
const MAX_PEOPLE_TOKENS = 20_000;
/** Minimum tokens for people's words, because in a very small budget their share has no room for the first request. */
const LEAST_PEOPLE_TOKENS = 60;

/** Chooses the words worth keeping without a model. Deterministic and within the budget. More room never shows less. */
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
  /** The largest budget for which the chooser is called. */
  largest: number;
  most: number;
  /** Text that the prompt shows beside the quotes. */
  shown: string;
  peopleShare?: number;
  mostForPeople?: number;
  mostForOthers?: number;
  /** Number of people's messages that the prompt shows after the quotes. Default 0. */
  saidSince?: number;
}

type Chooser = (budget: number) => Steps<Extraction>;

/** Ranks the candidates once. The result can then choose within any budget up to `largest`. */
export function* chooserSteps(
  all: readonly Candidate[],
  pricing: Pricing,
  options: ChooserOptions,
): Steps<Chooser> {
  const candidates = all.filter(saysSomething);
  const { largest, most, shown, mostForOthers = Infinity } = options;
  const { peopleShare = PEOPLE_SHARE, mostForPeople = Infinity, saidSince = 0 } = options;
  const people = candidates.filter(({ role }) => role === 'person');
  const newest = newestOf(people, NEWEST - saidSince);
  const others = candidates.filter(({ role }) => role !== 'person');
  const needed = yield* neededFor(people, largest, pricing);
  const telling = people.filter((each) => each.tells || each.pinned !== undefined || newest.includes(each));
  const toTell = yield* neededFor(telling, largest, pricing);
  const forDecisions = yield* neededForDecisions(others, Math.min(largest, mostForOthers), pricing);
  // This upper bound needs no token counts.
  const bound = Math.ceil(others.reduce((total, { whole }) => total + whole.length / 2 + 40, 0));
  const othersNeed = Math.min(bound, mostForOthers);
  const newestFirst = others.toReversed();
  const ranked = yield* rankUnits(others, { count: pricing.count, most, shown });
  return function* choose(budget) {
    const whole = mostForOthers === Infinity ? yield* allAt(candidates, WHOLE_LEVEL, budget, pricing) : null;
    if (whole) return extractionOf(whole);
    // Both parts of the budget grow with it.
    const part = Math.max(Math.floor(budget * peopleShare), Math.min(budget, LEAST_PEOPLE_TOKENS));
    const least = Math.max(Math.floor(part * LEAST_BESIDE_DECISIONS), Math.min(budget, LEAST_PEOPLE_TOKENS));
    const usual = Math.min(MAX_PEOPLE_TOKENS, Math.max(least, Math.min(part, budget - forDecisions)));
    const worth = Math.min(usual, toTell + Math.floor(budget * REMARKS_SHARE));
    const share = Math.min(needed, mostForPeople, Math.max(worth, budget - othersNeed));
    const forNewest = Math.floor(Math.max(usual, share) * NEWEST_SHARE);
    const kept = yield* keepWords({ people, newest, forNewest }, share, pricing);
    const rest = Math.min(budget - share, mostForOthers);
    return extractionOf([...kept, ...(yield* digest({ ranked, newestFirst }, rest, pricing))]);
  };
}

/** Tokens of the sentences in which agents say what they decided, at most `most`. */
function* neededForDecisions(others: readonly Candidate[], most: number, pricing: Pricing): Steps<number> {
  let needed = 0;
  for (const candidate of others.toReversed()) {
    const units = candidate.units();
    const chosen = units.flatMap((unit, at) => (isDecision(unit) ? [at] : []));
    if (chosen.length > 0) needed += pricing.as(candidate, joinUnits(units, chosen)).tokens;
    yield candidate.whole.length + pricing.work();
    if (needed >= most) return most;
  }
  return needed;
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

/** As many of the ranked parts as fit, those of a message on one line. If all fit, the newest messages are shown whole. */
function* digest(
  { ranked, newestFirst }: { ranked: readonly Ranked[]; newestFirst: readonly Candidate[] },
  budget: number,
  pricing: Pricing,
): Steps<Kept[]> {
  let [fits, tooMany] = [0, ranked.length + 1];
  let best: Kept[] = [];
  // The cost of joints and headings depends on the choice, so each choice is priced as a whole.
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    const lines = yield* linesOf(ranked.slice(0, middle), pricing);
    if (sum(lines) <= budget) [best, fits] = [lines, middle];
    else tooMany = middle;
  }
  return fits === ranked.length ? yield* wholeAgain(best, newestFirst, { budget, pricing }) : best;
}

/** Maximum tokens of a message that is shown whole. Larger ones are results and stay excerpts. */
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

interface People {
  people: readonly Candidate[];
  /** Their last messages, and the tokens for these. */
  newest: readonly Candidate[];
  forNewest: number;
}

/**
 * People's words within a share: all of them whole, if they fit. Otherwise mere acknowledgements are dropped, and the pieces
 * of the other messages are cut to the same length. If even the shortest forms do not fit, the least important messages are
 * dropped, pinned ones last. More room never shows less, because the order of messages, the lengths and the groups do not
 * depend on the share.
 */
function* keepWords({ people, newest, forNewest }: People, share: number, pricing: Pricing): Steps<Kept[]> {
  const whole = yield* allAt(people, WHOLE_LEVEL, share, pricing);
  if (whole) return whole;
  const ranked = people.filter(isWorthKeeping).toSorted(byImportance);
  const large: Candidate[] = [];
  const others: Candidate[] = [];
  const last = (yield* allAt(newest, WHOLE_LEVEL, Math.min(share, forNewest), pricing)) ?? [];
  for (const candidate of ranked.filter((each) => !last.some((kept) => kept.candidate === each))) {
    const isLarge = pricing.roughly(candidate, LEAST_LEVEL) > LARGE_TOKENS;
    (isLarge ? large : others).push(candidate);
    yield pricing.work();
  }
  const forLarge = yield* neededFor(large, Math.floor(share * LARGE_SHARE), pricing);
  return [
    ...last,
    ...(yield* shortened(large, forLarge, pricing)),
    ...(yield* shortened(others, share - forLarge - sum(last), pricing)),
  ];
}

/**
 * People's last messages stay whole if they take at most this share, because agents are working on them. Those that the prompt
 * shows after the quotes count among them.
 */
const NEWEST = 2;
const NEWEST_SHARE = 0.4;

function newestOf(people: readonly Candidate[], most: number): Candidate[] {
  const said = people.filter(
    (each) => each.pinned === undefined && each.replacedBy === undefined && isWorthKeeping(each),
  );
  return said.toSorted((a, b) => b.seq - a.seq).slice(0, Math.max(0, most));
}

/** Messages that are long even in their shortest form, such as pasted logs, share a separate part. */
const LARGE_TOKENS = 400;
const LARGE_SHARE = 0.3;

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

/** Whether a candidate may be shown at all. A mere acknowledgement of an agent may not, even if there is room. */
function saysSomething({ role, whole }: Candidate): boolean {
  return role !== 'reply' || !isChatter(whole);
}

function isWorthKeeping(candidate: Candidate): boolean {
  return candidate.pinned !== undefined || !isChatter(candidate.whole);
}

function byImportance(a: Candidate, b: Candidate): number {
  return rankOf(b) - rankOf(a) || b.seq - a.seq;
}

/** Rank: the request first, then goals, then the others by score, and replaced messages last. */
function rankOf({ pinned, replacedBy, scored }: Candidate): number {
  if (pinned === 'request') return Infinity;
  if (replacedBy !== undefined) return -Infinity;
  return pinned === 'goal' ? Number.MAX_SAFE_INTEGER : scored.score;
}

/** The candidates in their order, until one does not fit. The rest of the room gets its most important parts. */
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

/** All candidates at a level. Null if they exceed the share; counting stops there. */
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

interface Ranked {
  candidate: Candidate;
  at: number;
  unit: Unit;
  tokens: number;
}

/** Maximum parts that are compared with each other, the most promising ones. */
const MOST_WEIGHED = 4_000;
const ROLE = { person: 1.5, key: 1.6, reply: 1.6, work: 0.6, system: 0.6 } as const;
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
/** Points for a name, number, command or word that no part chosen before shows, multiplied by how often it is used. */
const NAME = 0.8;
const NUMBER = 0.8;
const COMMAND = 1.6;
const WORD = 0.12;
const WEIGHING = 8;
/** Worth of the oldest message relative to the newest. */
const OLDEST = 0.2;
/** Tokens added to each part when it is rated, for speaker, number and joints. */
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
 * The parts of messages in the order in which a digest takes them: each time the part that adds most per token to the parts
 * before it. The order does not depend on the budget, so more room never shows less. `shown`: text that the prompt shows
 * beside the digest.
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
      // A decision holds until another one, so its age does not lower its worth.
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

/** A gain can only fall as more is covered. So if the gain of the first part is up to date, this part is the best. */
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
  // A part that repeats what is already shown adds little, whatever its kind.
  const novelty = facts.size === 0 ? 1 : fresh / facts.size;
  return factor * (base * (0.2 + 0.8 * novelty) + gain);
}

/** Bound of the logarithm of uses: further uses add nothing. */
const MOST_BITS = 3;
const MAX_COMMAND = 80;

/** The logarithm as a whole number, so that the order is the same on every machine. */
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

/** What a part mentions, each with its points. A path counts by its last part, a name by its words. */
function factsOf({ text, isCall }: Unit): Map<string, number> {
  const facts = new Map<string, number>();
  // The command without its outcome, so that repeated uses count together. The last outcome is shown.
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
