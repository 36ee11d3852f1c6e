import { addTimes, emptyTimes, type TimePage } from '../library/projection/time-page.ts';
import type { Troupe } from '../library/troupe.ts';

const PAGE = 1_000;
/** Pages read for one answer: a page holds few large events. */
const MAX_PAGES = 50;

interface FoundTimes {
  page: TimePage;
  head: number;
  /** The next `after`; null at the end. */
  next: number | null;
}

/** The times of at most `limit` events after a seq. Throws `conversation_unknown`. */
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
