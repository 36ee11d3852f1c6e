import type { Event } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';

/** The store, or the log with what it has in memory. */
export interface PageSource {
  readPage(
    log: ConversationKey,
    range: { after: number; upTo?: number },
  ): Promise<{ events: readonly Event[]; isLast: boolean }>;
}

/** All of a log after a seq, up to `upTo` or its head, in pages that give the event loop back in between. */
export async function* readPages(
  source: PageSource,
  log: ConversationKey,
  { after, upTo }: { after: number; upTo?: number | undefined },
): AsyncGenerator<readonly Event[], void> {
  const end = upTo === undefined ? {} : { upTo };
  for (let at = after; ;) {
    const { events, isLast } = await source.readPage(log, { after: at, ...end });
    if (events.length > 0) yield events;
    at = events.at(-1)?.seq ?? at;
    if (isLast) return;
  }
}
