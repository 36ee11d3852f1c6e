import type { Event, ConversationId } from '../events/index.ts';
import { matchesRow, type RowFilter } from '../library/projection/match-event.ts';
import type { Row } from '../library/projection/model.ts';
import { rowOf } from '../library/projection/row.ts';
import type { Troupe, FoundPassage } from '../library/troupe.ts';
import { addTimes, emptyTimes, type TimePage } from '../library/projection/time-page.ts';
import type { Clock } from '../base/clock.ts';
import { TroupeError } from '../base/errors.ts';
import {
  conversationTerm,
  findWords,
  type Found,
  type WordQuery,
  wordQuery,
} from '../library/projection/search-words.ts';
import { rankOf, type StandingState } from '../library/projection/standing.ts';
import { type InboxKeeper, waitAWhile } from './inbox.ts';

const PAGE = 1_000;
/** Events of the first page when reading backwards, which are often enough. Later pages are longer. */
const FIRST_STRETCH = 50;
/** Most events read for one answer. Callers continue with further requests, so that others are served in between. */
export const MAX_SCANNED = 20_000;
/** Most pages read for one answer: a page of large events holds few of them. */
const MAX_PAGES = 50;

interface RowsRequest extends RowFilter {
  before?: number | undefined;
  after?: number | undefined;
  limit: number;
}

interface FoundRows {
  /** In ascending order of seq. */
  rows: Row[];
  head: number;
  /** Whether the log continues: before the rows, or with `after` behind them. */
  more: boolean;
  /** The next `before` or `after`; null at the end. */
  next: number | null;
}

/** Matching rows: the newest before a seq, or the oldest after one. Throws `conversation_unknown`. */
export function scanRows(
  troupe: Pick<Troupe, 'events'>,
  conversation: string,
  { before, after, limit, ...filter }: RowsRequest,
): Promise<FoundRows> {
  const place = { conversation, limit, filter };
  return after === undefined ? scanBack(troupe, before, place) : scanForward(troupe, after, place);
}

interface ScanPlace {
  conversation: string;
  limit: number;
  filter: RowFilter;
}

async function scanBack(
  troupe: Pick<Troupe, 'events'>,
  before: number | undefined,
  { conversation, limit, filter }: ScanPlace,
): Promise<FoundRows> {
  const { head } = await troupe.events(conversation, { after: 0, limit: 1 });
  const rows: Row[] = [];
  let next = Math.min(before ?? head + 1, head + 1);
  const least = next - MAX_SCANNED;
  let pages = 0;
  for await (const page of backwards(troupe, conversation, next)) {
    for (const event of page) {
      if (rows.length >= limit || event.seq < least) break;
      next = event.seq;
      take(rows, event, filter);
    }
    pages += 1;
    if (rows.length >= limit || next <= least || pages >= MAX_PAGES) break;
  }
  return { rows: rows.reverse(), head, more: next > 1, next: next > 1 ? next : null };
}

async function scanForward(
  troupe: Pick<Troupe, 'events'>,
  after: number,
  { conversation, limit, filter }: ScanPlace,
): Promise<FoundRows> {
  const rows: Row[] = [];
  for (let next = after, pages = 1; ; pages += 1) {
    const { events, head } = await troupe.events(conversation, { after: next, limit: PAGE });
    for (const event of events) {
      take(rows, event, filter);
      next = event.seq;
      if (rows.length >= limit) break;
    }
    const isOver = events.length === 0 || next >= head;
    if (isOver || rows.length >= limit || next - after >= MAX_SCANNED || pages >= MAX_PAGES)
      return { rows, head, more: !isOver, next: isOver ? null : next };
  }
}

function take(rows: Row[], event: Event, filter: RowFilter): void {
  const row = rowOf(event);
  if (matchesRow(row, event, filter)) rows.push(row);
}

/** Pages of events before a seq, newest first, for events of any size. */
async function* backwards(
  troupe: Pick<Troupe, 'events'>,
  conversation: string,
  before: number,
): AsyncGenerator<Event[], void> {
  let stretch = FIRST_STRETCH;
  for (let end = before - 1; end > 0;) {
    const after = Math.max(0, end - stretch);
    const { events, head } = await troupe.events(conversation, { after, limit: end - after });
    const last = events.at(-1)?.seq ?? end;
    if (last < Math.min(end, head)) {
      // Pages are read forwards, and this one ended before the range did.
      stretch = Math.min(events.length, Math.floor((end - after) / 2));
      continue;
    }
    yield events.toReversed();
    end = after;
    stretch = Math.min(PAGE, 2 * stretch);
  }
}

interface FoundTimes {
  page: TimePage;
  head: number;
  /** The next `after`; null at the end. */
  next: number | null;
}

/** Times of at most `limit` events after a seq. Throws `conversation_unknown`. */
export async function scanTimes(
  troupe: Pick<Troupe, 'events'>,
  conversation: string,
  { after, limit, parts }: { after: number; limit: number; parts: boolean },
): Promise<FoundTimes> {
  const page = emptyTimes();
  for (let pages = 1; ; pages += 1) {
    const read = page.ms.length;
    const { events, head } = await troupe.events(conversation, {
      after: after + read,
      limit: Math.min(PAGE, limit - read),
    });
    addTimes(page, events, { parts });
    const last = after + page.ms.length;
    if (events.length === 0 || last >= head) return { page, head, next: null };
    if (page.ms.length >= limit || pages >= MAX_PAGES) return { page, head, next: last };
  }
}

/** Time after which an answer ends with what it has, ms. */
const MAX_MS = 2_000;
/** Number of events after which an answer ends with what it has. */
const MAX_EVENTS = 50_000;
/** Passages that are requested at a time. */
const PASSAGES = 25;

interface SearchQuery {
  q: string;
  conversation?: string | undefined;
  agent?: string | undefined;
  /** Id or name of who wrote the event. */
  author?: string | undefined;
  kinds?: readonly string[] | undefined;
  states?: readonly StandingState[] | undefined;
  /** Bounds of the events' times: from <= at < to. */
  from?: number | undefined;
  to?: number | undefined;
  limit: number;
  after?: string | undefined;
}

interface SearchHits {
  /** The passage with the newest events first; within a passage the newest event first. */
  hits: ({ conversation: ConversationId; row: Row } & Found)[];
  /** Conversations with events that are not indexed yet. */
  unread: number;
  next: string | null;
}

type Searched = Pick<Troupe, 'events' | 'passages' | 'standings'>;

/** Searches the index of words, but takes results from the log: deleted or erased text is never found. */
export async function searchConversations(
  troupe: Searched,
  keeper: InboxKeeper,
  clock: Clock,
  query: SearchQuery,
): Promise<SearchHits> {
  await waitAWhile(keeper, clock);
  const found = await findHits(troupe, clock, query);
  const { behind } = await troupe.standings.list({ limit: 1 });
  return { ...found, unread: behind };
}

async function findHits(
  troupe: Searched,
  clock: Clock,
  query: SearchQuery,
): Promise<Pick<SearchHits, 'hits' | 'next'>> {
  const words = wordQuery(query.q);
  const hits: SearchHits['hits'] = [];
  if (words.terms.length === 0) return { hits, next: null };
  const until = clock.now() + MAX_MS;
  let events = 0;
  let place = parsePlace(query.after);
  for await (const candidate of candidates(troupe, filterOf(query, words), place)) {
    if (hits.length >= query.limit || events >= MAX_EVENTS || clock.now() >= until)
      return { hits, next: placeText(place) };
    events += 1;
    const { event } = candidate;
    const found = isSought(event, query) ? findWords(event, words) : null;
    if (found) hits.push({ conversation: event.conversation, row: rowOf(event), ...found });
    place = { passage: candidate.before, conversation: event.conversation, seq: event.seq };
  }
  return { hits, next: null };
}

type Filter = Omit<Parameters<Troupe['passages']['find']>[0], 'limit' | 'after'>;

function filterOf({ agent, conversation, states, from }: SearchQuery, words: WordQuery): Filter {
  const terms = [...words.terms];
  if (agent !== undefined) terms.push({ term: `@${agent}`.toLowerCase(), whole: true });
  if (conversation !== undefined) terms.push({ term: conversationTerm(conversation), whole: true });
  return {
    terms,
    ...(conversation !== undefined && { conversation }),
    ...(states && { ranks: states.map(rankOf) }),
    ...(from !== undefined && { from }),
  };
}

function isSought(event: Event, { agent, author, kinds, from, to }: SearchQuery): boolean {
  if (kinds && !kinds.includes(event.kind)) return false;
  if (author !== undefined && !isBy(event, author.toLowerCase())) return false;
  if (from !== undefined && event.at < from) return false;
  if (to !== undefined && event.at >= to) return false;
  return agent === undefined || matchesRow(rowOf(event), event, { agents: [agent] });
}

function isBy({ author: { id, name } }: Event, lower: string): boolean {
  return id.toLowerCase() === lower || name.toLowerCase() === lower;
}

/** Where an answer ended. */
interface Place {
  /** Passage before the one in which it ended; '' for the first. */
  passage: string;
  conversation: string;
  /** Last event that was looked at; the next answer looks at earlier ones. */
  seq: number;
}

/** Events of passages that have all terms. */
async function* candidates(
  troupe: Searched,
  filter: Filter,
  start: Place,
): AsyncGenerator<{ event: Event; before: string }, void> {
  let before = start.passage;
  let isFirst = true;
  for (let after: string | null = before; after !== null;) {
    const page: Awaited<ReturnType<Troupe['passages']['find']>> = await troupe.passages.find({
      ...filter,
      limit: PASSAGES,
      ...(after !== '' && { after }),
    });
    for (const passage of page.passages) {
      const isResumed = isFirst && passage.id === start.conversation;
      isFirst = false;
      for (const event of await readPassage(troupe, passage))
        if (!isResumed || event.seq < start.seq) yield { event, before };
      before = passage.place;
    }
    after = page.next;
  }
}

/** The events of a passage, newest first; none if the conversation was deleted. */
async function readPassage(troupe: Searched, { id, first, last }: FoundPassage): Promise<Event[]> {
  const read: Event[] = [];
  try {
    for (let after = first - 1; after < last;) {
      const { events } = await troupe.events(id, { after, limit: last - after });
      if (events.length === 0) break;
      read.push(...events);
      after = events.at(-1)!.seq;
    }
  } catch (error) {
    // The conversation was deleted in the meantime.
    if (!(error instanceof TroupeError) || error.code !== 'conversation_unknown') throw error;
  }
  return read.reverse();
}

const PLACE = /^(\d{1,15})~([A-Za-z0-9._@:-]{0,128})~([A-Za-z0-9._@:/-]{0,400})$/;

const placeText = ({ seq, conversation, passage }: Place) => `${seq}~${conversation}~${passage}`;

function parsePlace(text: string | undefined): Place {
  if (text === undefined) return { passage: '', conversation: '', seq: 0 };
  const [, seq, conversation, passage] = PLACE.exec(text) ?? [];
  if (passage !== undefined) return { passage, conversation: conversation ?? '', seq: Number(seq) };
  const message = `"${text.slice(0, 100)}" is not a position in this list: use the "next" of an answer to the same query`;
  throw new TroupeError('event_invalid', message, { path: 'after' });
}
