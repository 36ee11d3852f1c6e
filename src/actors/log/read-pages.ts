import type { Event } from '../../events/index.ts';
import { type ConversationKey, PAGE_BYTES, type Store } from '../../store/store.ts';
import { eventText } from '../../context/index.ts';

/** The store, or the log, which has recent events in memory. */
export interface PageSource {
  readPage(
    log: ConversationKey,
    range: { after: number; upTo?: number },
  ): Promise<{ events: readonly Event[]; isLast: boolean }>;
}

/** What a view is folded from: pages, and single events that a checkpoint left out. */
export interface ViewSource extends PageSource {
  readById(log: ConversationKey, id: string): Promise<Event | null>;
}

/** The events of a log after a seq, up to `upTo` or the head, in pages. Other work runs between pages. */
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

/** Most characters that a summary is made from: far more than it can contain. */
const MOST_CHARS = 16 * 1_048_576;

/** The newest events of a range with at most `mostChars` of text, oldest first. Reads in bounded pages. */
export async function readNewest(
  store: Pick<Store, 'read'>,
  log: ConversationKey,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
  mostChars: number = MOST_CHARS,
): Promise<Event[]> {
  const kept: { event: Event; chars: number }[] = [];
  let chars = 0;
  for (let at = after; at < upTo;) {
    const page = await store.read(log, { after: at, upTo, limit, maxBytes: PAGE_BYTES });
    if (page.length === 0) break;
    for (const event of page) {
      const length = eventText(event).length;
      kept.push({ event, chars: length });
      chars += length;
    }
    while (chars > mostChars && kept.length > 1) chars -= kept.shift()?.chars ?? 0;
    at = page.at(-1)?.seq ?? upTo;
  }
  return kept.map(({ event }) => event);
}
