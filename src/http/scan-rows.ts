import type { Event } from '../events/index.ts';
import { matchesRow, type RowFilter } from '../library/projection/match-event.ts';
import type { Row } from '../library/projection/model.ts';
import { rowOf } from '../library/projection/row.ts';
import type { Troupe } from '../library/troupe.ts';

const PAGE = 1_000;
/** Size of the first page when reading backwards, which is often enough. Later pages are longer. */
const FIRST_STRETCH = 50;
/** Events read for one answer. Callers continue with further requests, so that others are served in between. */
export const MAX_SCANNED = 20_000;
/** Pages read for one answer: a page holds few large events. */
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
  /** Whether the log continues: backwards, or with `after` forwards. */
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

/** Pages of events before a seq, the newest first, for events of any size. */
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
      // Pages are read forwards; this one ended before the range did.
      stretch = Math.min(events.length, Math.floor((end - after) / 2));
      continue;
    }
    yield events.toReversed();
    end = after;
    stretch = Math.min(PAGE, 2 * stretch);
  }
}
