import type { CompactionBody, Event, Quote, Usage } from '../../events/index.ts';
import { quoteTokens } from '../extract/pricing.ts';
import { messageText } from '../message-text.ts';
import type { People } from '../people.ts';
import { atOnce, type Steps } from '../steps.ts';
import { isStranger, type Trusted } from '../trusted.ts';
import { clipToTokens } from './clip.ts';
import { renderCompaction } from './render-compaction.ts';
import { isPersonSpeaker, peopleOf, speakerOf } from './speakers.ts';

/**
 * What people said, word for word and newest first until the budget is used up by them and the marks around them, quotes of the last compaction included;
 * what one message may take is half of it. Ascending by seq.
 */
export function peopleQuotes(
  events: readonly Event[],
  previous: readonly Quote[],
  budgetTokens: number,
  count: (text: string) => number,
): Quote[] {
  return atOnce(quoteSteps(events, previous, budgetTokens, { count, people: peopleOf(events) }));
}

interface QuoteOptions {
  count: (text: string) => number;
  people: People;
  trusted?: Trusted;
}

export function* quoteSteps(
  events: readonly Event[],
  previous: readonly Quote[],
  budgetTokens: number,
  { count, people, trusted = null }: QuoteOptions,
): Steps<Quote[]> {
  const bySeq = new Map(previous.filter(({ speaker }) => isPersonSpeaker(speaker)).map((q) => [q.seq, q]));
  for (const event of events) {
    if (event.kind !== 'message' || event.author.kind !== 'user') continue;
    const text = messageText(event.body);
    if (text.trim() === '') continue;
    const rank = isStranger(trusted, event) ? { untrusted: true as const } : {};
    bySeq.set(event.seq, { seq: event.seq, speaker: speakerOf(event, people), text, ...rank });
  }
  const newestFirst = [...bySeq.values()].toSorted((a, b) => b.seq - a.seq);
  const kept: Quote[] = [];
  let left = budgetTokens;
  for (const quote of newestFirst) {
    const clipped = clipToTokens(quote.text, Math.floor(budgetTokens / 2), count);
    yield quote.text.length;
    if (clipped === null) break;
    const tokens = quoteTokens({ ...quote, text: clipped.text }, count);
    if (tokens > left) break;
    left -= tokens;
    kept.push(clipped.cut ? { ...quote, text: clipped.text, cut: true } : quote);
  }
  return kept.toReversed();
}

export interface CompactionParts extends Omit<CompactionBody, 'tokens' | 'usage'> {
  /** Tokens of what it stands for. */
  before: number;
  secret: string;
  count: (text: string) => number;
  usage?: Usage | undefined;
}

/** The body of the event, with what it costs as it is rendered. */
export function composeCompaction({
  before,
  secret,
  count,
  usage,
  ...parts
}: CompactionParts): CompactionBody {
  const body = { ...parts, tokens: { before, after: 0 }, ...(usage && { usage }) };
  return { ...body, tokens: { before, after: count(renderCompaction(body, secret)) } };
}
