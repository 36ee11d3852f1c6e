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

/** Input of a compaction by a model or by extraction. */
export interface CompactionBase {
  number: number;
  upTo: number;
  reason: CompactionReason;
  by: AgentId;
  /** Tokens of what it replaces, and its own budget as rendered. */
  before: number;
  budget: number;
  /** Everything after `previous.upTo`, up to `upTo`. */
  events: readonly Event[];
  previous: CompactionBody | null;
  policy: CompactionPolicy;
  secret: string;
  people: People;
  count: (text: string) => number;
  /** People whose demands are constraints. */
  trusted?: Trusted;
}

/** Framing around the parts, and the shares of the budget tried until the whole fits. */
const FRAME_TOKENS = 120;
const SHARES = [1, 0.8, 0.6, 0.4, 0.2];
/**
 * Added to the room of a listing: estimates of headings are upper bounds, so a short listing would not fit otherwise.
 */
const HEADINGS_TOKENS = 40;
/** Share that people's quotes may take of what a summary leaves. */
const QUOTES_SHARE = 0.6;
/** Tokens that facts may take before the summary. They also get what other parts leave. */
const MAX_FACTS_FIRST = 3_000;
/** Share that an earlier prose summary may take of an extraction. */
const PROSE_SHARE = 0.4;

type Composed = CompactionBody | null;

/** A compaction of the most important words, chosen without a model. Null if nothing fits or nothing would be saved. */
export function extractCompaction(base: CompactionBase): Composed {
  return atOnce(extractionSteps(base));
}

export function* extractionSteps(base: CompactionBase): Steps<Composed> {
  const { events, previous, count } = base;
  const facts = yield* factsOf(base);
  const candidates = yield* candidateSteps(events, previous?.quotes ?? [], count, base.trusted);
  const pricing = createPricing(count);
  return yield* firstFitting(base, function* (room) {
    // The events behind an earlier model summary are not read again, so its words cannot be found anew.
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

/** A model's summary, beside people's words verbatim and the facts. */
export function summaryCompaction(base: SummaryBase): Composed {
  return atOnce(summarySteps(base));
}

type SummaryBase = CompactionBase & { text: string; usage?: Usage | undefined };

export function* summarySteps(base: SummaryBase): Steps<Composed> {
  const { events, previous, people, count, policy, usage, trusted = null } = base;
  const facts = yield* factsOf(base);
  const whole = hasUntrustedWords(base) ? withoutConstraints(base.text) : base.text;
  return yield* firstFitting(base, function* (room) {
    // Facts come first: they are literal, and words missing from the summary are found nowhere else.
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

/** Whether an untrusted person has spoken. */
function hasUntrustedWords({ events, previous, trusted = null }: CompactionBase): boolean {
  return events.some((event) => isUntrusted(trusted, event)) || keepsUntrustedWords(previous);
}

function keepsUntrustedWords(previous: CompactionBody | null): boolean {
  if (!previous) return false;
  const { quotes, facts } = previous;
  const said = [...quotes, ...facts.errors, ...facts.pending, ...(facts.claims ?? [])];
  return said.some((each) => typeof each !== 'string' && each.untrusted === true);
}

/** Demands of people who are no longer trusted become claims. So do entries of old logs, which have no author. */
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

/** Share of the budget that facts may take. They are small and dense; quotes get the rest. */
const MAX_FACTS_SHARE = 0.5;

/** Divides the budget before anything is chosen. */
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
 * A model's summary without its section of constraints. A model may have believed an untrusted person; the constraints
 * found without a model are listed with their speakers instead.
 */
function withoutConstraints(summary: string): string {
  let isLeftOut = false;
  const kept = summary.split('\n').filter((line) => {
    if (HEADING.test(line)) isLeftOut = line.toLowerCase().includes(CONSTRAINTS_HEADING);
    return !isLeftOut;
  });
  return kept.join('\n').trim();
}
