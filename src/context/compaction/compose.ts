import type { AgentId, CompactionBody, CompactionReason, Event, Facts, Usage } from '../../events/index.ts';
import { collectFactsSteps } from '../extract/facts.ts';
import { headTail, shortened } from '../text/cut-text.ts';
import { type Candidate, candidateSteps } from '../extract/candidates.ts';
import { isChatter } from '../extract/lexicon.ts';
import { pinsOf, pinSteps } from '../extract/goals.ts';
import { chooserSteps } from '../extract/key-messages.ts';
import { createPricing } from '../extract/pricing.ts';
import { isUnguessable, type ListingPart, renderFacts } from '../extract/render-facts.ts';
import { isUntrusted, type People, type Trusted } from '../text/people.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { composeCompaction } from './apply.ts';
import type { CompactionPolicy } from './policy.ts';
import { CONSTRAINTS_HEADING } from '../summary/requests.ts';

/** Input of a compaction by a model or by extraction. */
export interface CompactionBase {
  number: number;
  upTo: number;
  reason: CompactionReason;
  by: AgentId;
  /** `before`: tokens of the events that it replaces. `budget`: maximum tokens of the compaction as rendered. */
  before: number;
  budget: number;
  /** The events after `previous.upTo`, up to `upTo`. */
  events: readonly Event[];
  previous: CompactionBody | null;
  policy: CompactionPolicy;
  secret: string;
  people: People;
  count: (text: string) => number;
  /** Trusted people, whose demands are constraints. */
  trusted?: Trusted;
  /** Events after `upTo`, which the prompt shows whole. */
  following?: readonly Event[];
}

/** Tokens of the text around the parts, and the shares of the budget that are tried until the whole fits. */
const FRAME_TOKENS = 100;
const SHARES = [1, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2];
/** Cost of rendering and counting the lists or the whole once, in characters. It is constant, because their size is bounded. */
const LISTING_WORK = 65_536;
const JOINT_TOKENS = 3;
/** Maximum share of the lists in a compaction, and the same relative to everything else. */
const LISTS_SHARE = 0.2;
const LISTS_BESIDE = LISTS_SHARE / (1 - LISTS_SHARE);
/**
 * Maximum share that people's demands take before anything else: half of the smallest compaction, a fifth of most others.
 * They are literal and short, and once their messages are covered, no other part of the prompt has them.
 */
const DEMANDS_SHARE = 0.2;
const MOST_DEMANDS_SHARE = 0.5;
const DEMANDS_TOKENS = 200;
/** Minimum tokens for words, so that the first request is shown, at least shortened. */
const LEAST_WORDS_TOKENS = 80;
/** Maximum share of people's words in the room that a model's summary and the lists leave. */
const PEOPLE_SHARE = 0.6;
/** Minimum share of the words of others if the summary is short, so that decisions of agents are kept. */
const OTHERS_SHARE = 0.2;
const PROSE_SHARE = 0.4;

type Composed = CompactionBody | null;

/** A compaction of the most important words, chosen without a model. Null if nothing fits or nothing would be saved. */
export function extractCompaction(base: CompactionBase): Composed {
  return atOnce(extractionSteps(base));
}

export function* extractionSteps(base: CompactionBase): Steps<Composed> {
  const { previous, count } = base;
  const facts = yield* factsOf(base);
  const candidates = yield* candidatesOf(base);
  // The events of an earlier model summary are not read again, so extraction could not find its facts again.
  const prose = (room: number) => headTail(previous?.summary ?? '', Math.floor(room * PROSE_SHARE), count);
  const most = Math.max(0, base.budget - FRAME_TOKENS);
  const choose = yield* chooserSteps(candidates, createPricing(count), {
    largest: base.budget,
    most,
    shown: prose(most),
    saidSince: saidSince(base),
  });
  // Names of code that were met once take no room from words: a search finds them again.
  const passing = (facts.passing ?? []).filter(isUnguessable);
  const listsNeed = tokensOf({ ...facts, passing }, 'rest', base);
  return yield* firstFitting(base, facts, function* (room) {
    const summary = prose(room);
    const left = room - count(summary);
    const { quotes, chosen } = yield* choose(left - Math.min(listsNeed, Math.floor(left * LISTS_SHARE)));
    return { strategy: 'extraction', summary, quotes, chosen };
  });
}

/** A compaction of a model's summary, people's words verbatim, and the facts. */
export function summaryCompaction(base: SummaryBase): Composed {
  return atOnce(summarySteps(base));
}

type SummaryBase = CompactionBase & { text: string; usage?: Usage | undefined };

export function* summarySteps(base: SummaryBase): Steps<Composed> {
  const { count, policy, usage } = base;
  const facts = yield* factsOf(base);
  const candidates = yield* candidatesOf(base);
  const whole = hasUntrustedWords(base) ? withoutConstraints(base.text) : base.text;
  const listsNeed = tokensOf(facts, 'rest', base);
  const others = Math.max(count(whole), Math.floor(base.budget * OTHERS_SHARE));
  const choose = yield* chooserSteps(candidates, createPricing(count), {
    largest: base.budget,
    most: others,
    shown: whole,
    saidSince: saidSince(base),
    peopleShare: PEOPLE_SHARE,
    mostForPeople: policy.quoteTokens,
    mostForOthers: others,
  });
  return yield* firstFitting(base, facts, function* (room) {
    // Lists take precedence over the model's words: they are literal, and no other part has what a summary leaves out.
    const forLists = Math.min(listsNeed, Math.floor(room * LISTS_SHARE));
    const text = shortened(whole, room - forLists, count);
    const words = count(text);
    const { quotes, chosen } = yield* choose(Math.max(0, room - forLists - words));
    return { strategy: 'summary', summary: text, quotes, chosen, ...(usage && { usage }) };
  });
}

/** Number of people's messages after the compaction, without mere acknowledgements. */
function saidSince({ following = [] }: CompactionBase): number {
  return following.filter(
    ({ kind, author, body }) => kind === 'message' && author.kind === 'user' && !isChatter(body.content),
  ).length;
}

function* candidatesOf(base: CompactionBase): Steps<Candidate[]> {
  const { events, previous, count, trusted = null } = base;
  const pins = yield* pinSteps(events, pinsOf(previous?.quotes ?? []), trusted);
  return yield* candidateSteps(events, previous?.quotes ?? [], { count, trusted, pins });
}

function* factsOf({ events, previous, trusted = null }: CompactionBase): Steps<Facts> {
  const facts = yield* collectFactsSteps(events, previous?.facts ?? null, trusted);
  return trusted === null ? facts : demoted(facts, trusted);
}

function hasUntrustedWords({ events, previous, trusted = null }: CompactionBase): boolean {
  return events.some((event) => isUntrusted(trusted, event)) || keepsUntrustedWords(previous);
}

function keepsUntrustedWords(previous: CompactionBody | null): boolean {
  if (!previous) return false;
  const { quotes, facts } = previous;
  const said = [...quotes, ...facts.errors, ...facts.pending, ...(facts.claims ?? [])];
  return said.some((each) => each.untrusted === true);
}

/** Demands of people who are no longer trusted become claims. */
function demoted(facts: Facts, trusted: readonly string[]): Facts {
  const holds = (entry: Facts['constraints'][number]) => trusted.includes(entry.by.id);
  const constraints = facts.constraints.filter(holds);
  const claims = [...(facts.claims ?? []), ...facts.constraints.filter((entry) => !holds(entry))];
  return { ...facts, constraints, claims };
}

type Composition = Pick<CompactionBody, 'strategy' | 'summary' | 'quotes' | 'chosen' | 'usage'>;

/** Demands get their room first. The lists get what the words leave, at most their share of the whole. */
function* firstFitting(
  base: CompactionBase,
  facts: Facts,
  wordsIn: (room: number) => Steps<Composition>,
): Steps<Composed> {
  const { number, upTo, reason, by, before, budget, secret, count } = base;
  for (const share of SHARES) {
    const room = Math.max(0, Math.floor((budget - FRAME_TOKENS) * share));
    const most = mostForDemands(room);
    const few = yield* wordsIn(room - Math.min(most, tokensOf(facts, 'demands', base)));
    // Demands that the words contain are not listed, so the words get their room. More room never shows less.
    const forDemands = Math.min(most, tokensOf(unsaid(facts, few), 'demands', base));
    const { usage, ...words } = yield* wordsIn(room - forDemands);
    const parts = { number, upTo, reason, by, before, secret, count, ...words, ...(usage && { usage }) };
    yield LISTING_WORK;
    const left =
      budget - composeCompaction({ ...parts, facts, demands: '', listing: '' }).tokens.after - JOINT_TOKENS;
    // If the frame took more than was reserved, the words are shortened and not the demands.
    if (left < forDemands && share !== SHARES.at(-1)) continue;
    yield LISTING_WORK;
    const lists = yield* listsBeside({ ...parts, facts }, Math.min(left, most), base);
    const whole = { ...parts, facts, ...lists };
    const body = composeCompaction(whole);
    if (body.tokens.after <= budget && body.tokens.after < before) return body;
  }
  return null;
}

type Unlisted = Omit<Parameters<typeof composeCompaction>[0], 'demands' | 'listing'>;

function* listsBeside(
  words: Unlisted,
  mostForThem: number,
  { budget, count, people }: CompactionBase,
): Steps<{ demands: string; listing: string }> {
  const { facts } = words;
  const demands = renderFacts(unsaid(facts, words), mostForThem, count, { part: 'demands', people });
  yield LISTING_WORK;
  const beside = composeCompaction({ ...words, demands, listing: '' }).tokens.after;
  yield LISTING_WORK;
  const most = Math.min(budget - beside - JOINT_TOKENS, Math.floor(beside * LISTS_BESIDE));
  if (most <= 0) return { demands, listing: '' };
  const shown = saidBy(words);
  return { demands, listing: renderFacts(facts, most, count, { part: 'rest', shown, people }) };
}

/** Tokens of a part of the lists, if all of it were shown. */
function tokensOf(facts: Facts, part: ListingPart, { count, people, budget }: CompactionBase): number {
  return count(renderFacts(facts, budget, count, { part, people }));
}

function mostForDemands(room: number): number {
  const most = Math.max(room * DEMANDS_SHARE, Math.min(DEMANDS_TOKENS, room * MOST_DEMANDS_SHARE));
  return Math.floor(Math.max(0, Math.min(most, room - LEAST_WORDS_TOKENS)));
}

function saidBy({ summary, quotes }: Pick<Composition, 'summary' | 'quotes'>): string {
  return [summary, ...quotes.map(({ text }) => text)].join('\n');
}

/** The facts without demands that the words contain literally. If there are claims, all constraints stay listed. */
function unsaid(facts: Facts, words: Pick<Composition, 'summary' | 'quotes'>): Facts {
  if ((facts.claims ?? []).length > 0) return facts;
  const said = saidBy(words);
  return { ...facts, constraints: facts.constraints.filter((entry) => !said.includes(entry.text)) };
}

const HEADING = /^#{1,6} /;

/**
 * A model's summary without its section of constraints, because a model may have believed an untrusted person. The
 * constraints found without a model are listed with their speakers instead.
 */
function withoutConstraints(summary: string): string {
  let isLeftOut = false;
  const kept = summary.split('\n').filter((line) => {
    if (HEADING.test(line)) isLeftOut = line.toLowerCase().includes(CONSTRAINTS_HEADING);
    return !isLeftOut;
  });
  return kept.join('\n').trim();
}
