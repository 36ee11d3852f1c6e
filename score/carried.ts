import { eventText } from '../src/context/text/event-text.ts';
import { renderCompaction } from '../src/context/compaction/apply.ts';
import { isPersonSpeaker } from '../src/context/text/people.ts';
import type { CompactionBody, Event, Facts, Saying } from '../src/events/index.ts';
import { SECRET } from '../test/support/log-player.ts';

/** How much of each compaction the next one keeps, over all pairs of a log. */
export interface Carried {
  pairs: number;
  /** Demands, claims, artifacts and files: these lists lose nothing. */
  facts: Share;
  pending: Share;
  /** Pending items that disappeared although no event since then names them. */
  vanished: string[];
  /**
   * Quotes of people: word for word, where all quotes fit for sure; and anywhere, including shortened quotes and
   * lists.
   */
  quotesThatFit: Share;
  quotes: Share;
  /** Constraints that are readable in both compactions. */
  shownConstraints: Share;
  /** Largest share of the lists in a compaction. */
  lists: number;
  /** Compactions that still pin the first request. */
  requests: Share;
}

export interface Share {
  kept: number;
  of: number;
}

const noShare = (): Share => ({ kept: 0, of: 0 });

export function noCarried(): Carried {
  return {
    pairs: 0,
    facts: noShare(),
    pending: noShare(),
    vanished: [],
    quotesThatFit: noShare(),
    quotes: noShare(),
    shownConstraints: noShare(),
    lists: 0,
    requests: noShare(),
  };
}

/**
 * Quotes get at least half of a compaction, and people's words come first in 0.6 of that: below this share all of
 * them fit.
 */
const SURE_SHARE = 0.3;

export function countCarried(log: readonly Event[], carried: Carried, count: (text: string) => number): void {
  const bodies = log.flatMap((event) => (event.kind === 'compaction' ? [event.body] : []));
  const request = bodies[0]?.quotes.find(({ pinned }) => pinned === 'request')?.seq;
  for (const [index, after] of bodies.entries()) {
    carried.lists = Math.max(carried.lists, count(after.listing) / after.tokens.after);
    if (request !== undefined) {
      carried.requests.of += 1;
      if (after.quotes.some(({ seq, pinned }) => seq === request && pinned === 'request'))
        carried.requests.kept += 1;
    }
    const before = bodies[index - 1];
    if (!before) continue;
    const between = log.filter(({ seq }) => seq > before.upTo && seq <= after.upTo);
    carried.pairs += 1;
    countFacts(before.facts, after.facts, between, carried);
    countQuotes(before, after, between, { carried, count });
  }
}

function countFacts(before: Facts, after: Facts, between: readonly Event[], carried: Carried): void {
  for (const list of Object.keys(before) as (keyof Facts)[]) {
    const known = new Set((after[list] ?? []).map(keyOf));
    // Errors leave when they are settled, and names by the time of their last use.
    if (list === 'errors' || list === 'identifiers' || list === 'passing') continue;
    const share = list === 'pending' ? carried.pending : carried.facts;
    const entries: readonly (string | Saying)[] = before[list] ?? [];
    share.of += entries.length;
    share.kept += entries.filter((entry) => known.has(keyOf(entry))).length;
    if (list !== 'pending') continue;
    const said = between.map(eventText).join('\n');
    const gone = entries.filter((entry) => !known.has(keyOf(entry)));
    carried.vanished.push(...gone.filter((entry) => !isClosed(entry, said, between)).map(wordsOf));
  }
}

function keyOf(entry: string | Saying): string {
  return JSON.stringify(entry);
}

/** A question is closed by the next speaker; work by a list or text that names it again. */
function isClosed(entry: string | Saying, said: string, between: readonly Event[]): boolean {
  if (typeof entry !== 'string' && entry.asks)
    return between.some(({ kind }) => kind === 'message' || kind === 'step');
  const plain = said.replaceAll('\\"', '"').replaceAll('\\n', '\n');
  return plain.includes(wordsOf(entry).replace(/…$/, ''));
}

interface Counting {
  carried: Carried;
  count: (text: string) => number;
}

function countQuotes(
  before: CompactionBody,
  after: CompactionBody,
  between: readonly Event[],
  { carried, count }: Counting,
): void {
  const rendered = renderCompaction(after, SECRET);
  const people = before.quotes.filter(({ speaker }) => isPersonSpeaker(speaker));
  const news = between.filter(({ author, kind }) => author.kind === 'user' && kind === 'message');
  const size = [...people.map(({ text }) => text), ...news.map(eventText)].reduce(
    (sum, text) => sum + count(text) + FRAME_TOKENS,
    0,
  );
  const later = new Map(after.quotes.map((quote) => [quote.seq, quote.text]));
  carried.quotes.of += people.length;
  carried.quotes.kept += people.filter(({ seq, text }) => later.has(seq) || rendered.includes(text)).length;
  if (size <= after.tokens.after * SURE_SHARE) {
    carried.quotesThatFit.of += people.length;
    carried.quotesThatFit.kept += people.filter(({ seq, text }) => later.get(seq) === text).length;
  }
  const seen = renderCompaction(before, SECRET);
  const constraints = before.facts.constraints.map(wordsOf).filter((words) => seen.includes(words));
  carried.shownConstraints.of += constraints.length;
  carried.shownConstraints.kept += constraints.filter((words) => rendered.includes(words)).length;
}

/** Speaker, number and fence of a quote. */
const FRAME_TOKENS = 36;

function wordsOf(entry: string | Saying): string {
  return typeof entry === 'string' ? entry : entry.text;
}
