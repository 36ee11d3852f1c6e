import type { Steps } from '../steps.ts';
import type { Candidate } from './candidates.ts';
import { isChatter, GOAL } from './goals.ts';
import { errorLines } from './find-errors.ts';
import { findWords } from './find-names.ts';
import { CONSTRAINT, DECISION, DONE, PENDING, TODO_MARK } from './lexicon.ts';
import { countingWork } from '../tokens.ts';
import type { Unit } from './units.ts';

/** A part of a message, with its rank in a digest. */
export interface Ranked {
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
  decision: 2,
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
export function* rankUnits(
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
      const factor = ROLE[candidate.role] * (OLDEST + (1 - OLDEST) * (1 - candidate.age) ** 2);
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
