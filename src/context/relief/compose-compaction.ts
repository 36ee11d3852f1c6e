import type {
  AgentId,
  CompactionBody,
  Event,
  Facts,
  Quote,
  ReliefReason,
  Usage,
} from '../../events/index.ts';
import { collectFacts } from '../extract/collect-facts.ts';
import { headTail } from '../extract/cut-text.ts';
import { extractKeyMessages } from '../extract/extract-key-messages.ts';
import { quoteTokens } from '../extract/pricing.ts';
import { renderFacts } from '../extract/render-facts.ts';
import { shareBudget } from '../extract/share-budget.ts';
import type { People } from '../people.ts';
import { composeCompaction, peopleQuotes } from '../summary/carry-over.ts';
import type { ReliefPolicy } from './policy.ts';

/** What a compaction is made from, whoever chooses its words. */
export interface CompactionBase {
  number: number;
  upTo: number;
  reason: ReliefReason;
  by: AgentId;
  /** Tokens of what it stands for, and what it may have as rendered. */
  before: number;
  budget: number;
  /** Everything after `previous.upTo`, up to `upTo`. */
  events: readonly Event[];
  previous: CompactionBody | null;
  policy: ReliefPolicy;
  secret: string;
  people: People;
  count: (text: string) => number;
}

/** What stands around the parts, and the shares of the budget that are tried until the whole fits. */
const FRAME_TOKENS = 120;
const SHARES = [1, 0.8, 0.6, 0.4, 0.2];
/** Headings of a listing are reckoned at most: so much more than they cost may be asked for, or a short one finds no room. */
const HEADINGS_TOKENS = 40;
/** Of what a summary leaves, what people said may have. */
const QUOTES_SHARE = 0.6;
/** Of an extraction, an earlier summary in prose may have. */
const PROSE_SHARE = 0.4;

/** The words that matter most, without a model. Null where nothing fits, or what fits is no smaller. */
export function extractCompaction(base: CompactionBase): CompactionBody | null {
  const facts = factsOf(base);
  return firstFitting(base, (room) => {
    const { events, previous, count } = base;
    // What a model wrote before cannot be found again in events that are not read any more.
    const summary = headTail(previous?.summary ?? '', Math.floor(room * PROSE_SHARE), count);
    const share = shareBudget(facts, room - count(summary), count);
    const { quotes, chosen, tokens } = extractKeyMessages({ events, previous, budget: share.quotes, count });
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
export function summaryCompaction(
  base: CompactionBase & { text: string; usage?: Usage | undefined },
): CompactionBody | null {
  const { events, previous, people, count, policy, text, usage } = base;
  const facts = factsOf(base);
  const words = count(text);
  return firstFitting(base, (room) => {
    const most = Math.min(policy.quoteTokens, Math.floor((room - words) * QUOTES_SHARE));
    const quotes = peopleQuotes(events, previous?.quotes ?? [], Math.max(0, most), count, people);
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

/** Of each list, the newest: a log without end must not make a compaction without end. */
const MAX_FACTS = 2_000;

function factsOf({ events, previous }: CompactionBase): Facts {
  const facts = collectFacts(events, previous?.facts ?? null);
  return Object.fromEntries(
    Object.entries(facts).map(([list, entries]) => [list, entries.slice(-MAX_FACTS)]),
  ) as Facts;
}

type Words = Pick<
  CompactionBody,
  'strategy' | 'summary' | 'quotes' | 'chosen' | 'facts' | 'listing' | 'usage'
>;

function firstFitting(base: CompactionBase, wordsIn: (room: number) => Words): CompactionBody | null {
  const { number, upTo, reason, by, before, budget, secret, count } = base;
  for (const share of SHARES) {
    const { usage, ...words } = wordsIn(Math.max(0, Math.floor((budget - FRAME_TOKENS) * share)));
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
  { count }: CompactionBase,
): string {
  return renderFacts(facts, budget, count, beside.map(({ text }) => text).join('\n'));
}
