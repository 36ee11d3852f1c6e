import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import type { ConversationId, Event } from '../events/index.ts';
import { excerptOf, matchesRow, type RowFilter } from '../projection/match-event.ts';
import type { Row } from '../projection/model.ts';
import { rowOf } from '../projection/row.ts';
import type { Troupe } from '../troupe.ts';

const MAX_CONVERSATIONS = 50;
const MAX_EVENTS = 100_000;
const MAX_MS = 2_000;

export interface SearchHits {
  hits: { conversation: ConversationId; row: Row; excerpt: string }[];
  searched: { conversations: number; events: number };
  /** Whether something was left unsearched. */
  partial: boolean;
}

/** Looks for words in all conversations, the last active one first, and in each from its end. */
export async function searchConversations(
  troupe: Pick<Troupe, 'listConversations' | 'events'>,
  clock: Clock,
  { query, limit }: { query: string; limit: number },
): Promise<SearchHits> {
  const started = clock.now();
  const { conversations: found, next } = await troupe.listConversations({ limit: MAX_CONVERSATIONS });
  const hits: SearchHits['hits'] = [];
  const searched = { conversations: 0, events: 0 };
  const isEnough = () =>
    hits.length >= limit || searched.events >= MAX_EVENTS || clock.now() - started >= MAX_MS;
  for (const { id: conversation, head } of found) {
    if (isEnough()) return { hits, searched, partial: true };
    searched.conversations += 1;
    try {
      for await (const page of backwards(troupe, conversation, head + 1)) {
        for (const event of page) {
          if (isEnough()) return { hits, searched, partial: true };
          searched.events += 1;
          const excerpt = excerptOf(event, query);
          if (excerpt !== null) hits.push({ conversation, row: rowOf(event), excerpt });
        }
      }
    } catch (error) {
      // Deleted meanwhile.
      if (!(error instanceof TroupeError) || error.code !== 'conversation_unknown') throw error;
    }
  }
  return { hits, searched, partial: next !== null };
}

const PAGE = 1_000;
/** The first stretch when going back, often enough: later ones are longer. */
const FIRST_STRETCH = 50;
/** Looked at for one answer: who wants more asks again, and others get their turn in between. */
export const MAX_SCANNED = 20_000;
/** Read for one answer: of large events a page has few. */
const MAX_PAGES = 50;

interface RowsRequest extends RowFilter {
  before?: number | undefined;
  after?: number | undefined;
  limit: number;
}

interface FoundRows {
  /** Ascending by seq. */
  rows: Row[];
  head: number;
  /** Whether the log goes on where this ended: backwards, or with `after` forwards. */
  more: boolean;
  /** What to ask for next, as `before` or `after`; null where there is no more. */
  next: number | null;
}

/** Rows that match: the newest before a seq, or the oldest after one. Throws `conversation_unknown`. */
export async function scanRows(
  troupe: Pick<Troupe, 'events'>,
  conversation: string,
  { before, after, limit, ...filter }: RowsRequest,
): Promise<FoundRows> {
  if (after === undefined) {
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

/** Pages of events before a seq, the newest first, however large they are. */
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
      // One page is read forwards, and did not come to the end of so long a stretch.
      stretch = Math.min(events.length, Math.floor((end - after) / 2));
      continue;
    }
    yield events.toReversed();
    end = after;
    stretch = Math.min(PAGE, 2 * stretch);
  }
}
