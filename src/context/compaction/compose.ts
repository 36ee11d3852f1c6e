import type {
  AgentId,
  CompactionBody,
  CompactionReason,
  Event,
  Facts,
  Quote,
  Usage,
} from '../../events/index.ts';
import { collectFactsSteps } from '../extract/collect-facts.ts';
import { headTail } from '../extract/cut-text.ts';
import { choiceSteps } from '../extract/key-messages.ts';
import { candidateSteps } from '../extract/candidates.ts';
import { createPricing, quoteTokens } from '../extract/pricing.ts';
import { renderFacts } from '../extract/render-facts.ts';
import { isUntrusted, type People, type Trusted } from '../people.ts';
import { atOnce, type Steps } from '../steps.ts';
import { composeCompaction, quoteSteps } from '../summary/compaction-body.ts';
import { shortened } from '../summary/clip.ts';
import type { CompactionPolicy } from './policy.ts';
import { CONSTRAINTS_HEADING } from '../summary/instructions.ts';

/** What a compaction is made from, whoever chooses its words. */
export interface CompactionBase {
  number: number;
  upTo: number;
  reason: CompactionReason;
  by: AgentId;
  /** Tokens of what it stands for, and what it may have as rendered. */
  before: number;
  budget: number;
  /** Everything after `previous.upTo`, up to `upTo`. */
  events: readonly Event[];
  previous: CompactionBody | null;
  policy: CompactionPolicy;
  secret: string;
  people: People;
  count: (text: string) => number;
  /** Whose demands are constraints. */
  trusted?: Trusted;
}

/** What stands around the parts, and the shares of the budget that are tried until the whole fits. */
const FRAME_TOKENS = 120;
const SHARES = [1, 0.8, 0.6, 0.4, 0.2];
/** Headings of a listing are reckoned at most: so much more than they cost may be asked for, or a short one finds no room. */
const HEADINGS_TOKENS = 40;
/** Of what a summary leaves, what people said may have. */
const QUOTES_SHARE = 0.6;
/** Of a summary, facts have so much before anything else; what the other parts leave is theirs too. */
const MAX_FACTS_FIRST = 3_000;
/** Of an extraction, an earlier summary in prose may have. */
const PROSE_SHARE = 0.4;

type Composed = CompactionBody | null;

/** The words that matter most, without a model. Null where nothing fits, or what fits is no smaller. */
export function extractCompaction(base: CompactionBase): Composed {
  return atOnce(extractionSteps(base));
}

export function* extractionSteps(base: CompactionBase): Steps<Composed> {
  const { events, previous, count } = base;
  const facts = yield* factsOf(base);
  const candidates = yield* candidateSteps(events, previous?.quotes ?? [], count, base.trusted);
  const pricing = createPricing(count);
  return yield* firstFitting(base, function* (room) {
    // What a model wrote before cannot be found again in events that are not read any more.
    const summary = headTail(previous?.summary ?? '', Math.floor(room * PROSE_SHARE), count);
    const share = shareBudget(facts, room - count(summary), count);
    const { quotes, chosen, tokens } = yield* choiceSteps(candidates, share.quotes, pricing);
    const left = room - count(summary) - tokens + HEADINGS_TOKENS;
    return {
      strategy: 'extraction',
      summary,
      quotes,
      chosen,
      facts,
      listing: listed(facts, quotes, left, base),
    };
  });
}

/** A model's summary, and beside it word for word what people said, and the facts. */
export function summaryCompaction(base: SummaryBase): Composed {
  return atOnce(summarySteps(base));
}

type SummaryBase = CompactionBase & { text: string; usage?: Usage | undefined };

export function* summarySteps(base: SummaryBase): Steps<Composed> {
  const { events, previous, people, count, policy, usage, trusted = null } = base;
  const facts = yield* factsOf(base);
  const whole = hasUntrustedWords(base) ? withoutConstraints(base.text) : base.text;
  return yield* firstFitting(base, function* (room) {
    // Facts come first: they are literal, and what a model's words leave out is found nowhere else.
    const forFacts = Math.min(shareBudget(facts, room, count).facts, MAX_FACTS_FIRST);
    const text = shortened(whole, room - forFacts, count);
    const words = count(text);
    const most = Math.min(policy.quoteTokens, Math.floor((room - forFacts - words) * QUOTES_SHARE));
    const quotes = yield* quoteSteps(events, previous?.quotes ?? [], Math.max(0, most), {
      count,
      people,
      trusted,
    });
    const said = quotes.reduce((sum, quote) => sum + quoteTokens(quote, count), 0);
    const listing = listed(facts, [...quotes, { text }], Math.max(0, room - words - said), base);
    return {
      strategy: 'summary',
      summary: text,
      quotes,
      chosen: [],
      facts,
      listing,
      ...(usage && { usage }),
    };
  });
}

function* factsOf({ events, previous, trusted = null }: CompactionBase): Steps<Facts> {
  const facts = yield* collectFactsSteps(events, previous?.facts ?? null, trusted);
  return trusted === null ? facts : demoted(facts, trusted);
}

/** Whether somebody has spoken whose word does not count. */
function hasUntrustedWords({ events, previous, trusted = null }: CompactionBase): boolean {
  return events.some((event) => isUntrusted(trusted, event)) || keepsUntrustedWords(previous);
}

function keepsUntrustedWords(previous: CompactionBody | null): boolean {
  if (!previous) return false;
  const { quotes, facts } = previous;
  const said = [...quotes, ...facts.errors, ...facts.pending, ...(facts.claims ?? [])];
  return said.some((each) => typeof each !== 'string' && each.untrusted === true);
}

/** Whoever is trusted no more demands nothing, and whose word it was in a log of before nobody knows. */
function demoted(facts: Facts, trusted: readonly string[]): Facts {
  const holds = (entry: Facts['constraints'][number]) =>
    typeof entry !== 'string' && trusted.includes(entry.by.id);
  const constraints = facts.constraints.filter(holds);
  const claims = [...(facts.claims ?? []), ...facts.constraints.filter((entry) => !holds(entry))];
  return { ...facts, constraints, claims };
}

type Composition = Pick<
  CompactionBody,
  'strategy' | 'summary' | 'quotes' | 'chosen' | 'facts' | 'listing' | 'usage'
>;

function* firstFitting(base: CompactionBase, wordsIn: (room: number) => Steps<Composition>): Steps<Composed> {
  const { number, upTo, reason, by, before, budget, secret, count } = base;
  for (const share of SHARES) {
    const { usage, ...words } = yield* wordsIn(Math.max(0, Math.floor((budget - FRAME_TOKENS) * share)));
    const parts = { number, upTo, reason, by, before, secret, count, ...words };
    const body = composeCompaction({ ...parts, ...(usage && { usage }) });
    if (body.tokens.after <= budget && body.tokens.after < before) return body;
  }
  return null;
}

function listed(
  facts: Facts,
  beside: readonly Pick<Quote, 'text'>[],
  budget: number,
  { count, people }: CompactionBase,
): string {
  return renderFacts(facts, budget, count, { shown: beside.map(({ text }) => text).join('\n'), people });
}

/** Of a compaction's room. Facts are small and dense, so they take what they need up to here; quotes get the rest. */
const MAX_FACTS_SHARE = 0.5;

/** How a compaction's room is shared out before anything is chosen. */
export function shareBudget(
  facts: Facts,
  budget: number,
  count: (text: string) => number,
): { facts: number; quotes: number } {
  const most = Math.floor(budget * MAX_FACTS_SHARE);
  const needed = count(renderFacts(facts, most, count));
  return { facts: needed, quotes: budget - needed };
}

const HEADING = /^#{1,6} /;

/**
 * A model's summary without its section of constraints. Where people have spoken whose word does not count, a model may
 * have believed them: then the constraints are those that are listed with their speakers, found without a model.
 */
function withoutConstraints(summary: string): string {
  let isLeftOut = false;
  const kept = summary.split('\n').filter((line) => {
    if (HEADING.test(line)) isLeftOut = line.toLowerCase().includes(CONSTRAINTS_HEADING);
    return !isLeftOut;
  });
  return kept.join('\n').trim();
}
