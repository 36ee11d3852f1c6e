import type { Clock } from '../base/clock.ts';
import { TroupeError } from '../base/errors.ts';
import type { ConversationId, Event } from '../events/index.ts';
import { matchesRow } from '../library/projection/match-event.ts';
import type { Row } from '../library/projection/model.ts';
import { rowOf } from '../library/projection/row.ts';
import {
  conversationTerm,
  findWords,
  type Found,
  type WordQuery,
  wordQuery,
} from '../library/projection/search-words.ts';
import { rankOf, type StandingState } from '../library/projection/standing.ts';
import type { FoundPassage, Troupe } from '../library/troupe.ts';
import { type InboxKeeper, waitAWhile } from './inbox.ts';

/** Time after which an answer ends with what it has. */
const MAX_MS = 2_000;
/** Events after which it does. */
const MAX_EVENTS = 50_000;
/** Passages asked for at a time. */
const PASSAGES = 25;

export interface SearchQuery {
  q: string;
  conversation?: string | undefined;
  agent?: string | undefined;
  states?: readonly StandingState[] | undefined;
  /** Times of events: from <= at < to. */
  from?: number | undefined;
  to?: number | undefined;
  limit: number;
  after?: string | undefined;
}

export interface SearchHits {
  /** The passage with the newest events first; within it the newest event. */
  hits: ({ conversation: ConversationId; row: Row } & Found)[];
  /** Conversations with events that are not searched yet. */
  unread: number;
  next: string | null;
}

type Searched = Pick<Troupe, 'events' | 'passages' | 'standings'>;

/** Searches the index of words, and shows what is in the log: words that are gone from it are never found. */
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

function isSought(event: Event, { agent, from, to }: SearchQuery): boolean {
  if (from !== undefined && event.at < from) return false;
  if (to !== undefined && event.at >= to) return false;
  return agent === undefined || matchesRow(rowOf(event), event, { agents: [agent] });
}

/** Where an answer ended. */
interface Place {
  /** The passage before the one it ended in; '' for the first. */
  passage: string;
  conversation: string;
  /** The last event it has looked at; the next ones are before it. */
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

/** The events of a passage, the newest first; none of a removed conversation. */
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
    // The conversation was deleted meanwhile.
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
