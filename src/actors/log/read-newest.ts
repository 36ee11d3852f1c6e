import { eventText } from '../../context/index.ts';
import type { Event } from '../../events/index.ts';
import { type ConversationKey, PAGE_BYTES, type Store } from '../../store/store.ts';

/** Of what a summary is made from, in characters: far more than it can say. */
const MOST_CHARS = 16 * 1_048_576;

/** The newest events of a range that have so much text together, oldest first; read in pages, however large they are. */
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
