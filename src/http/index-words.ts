import { setImmediate } from 'node:timers/promises';
import type { Event } from '../events/index.ts';
import { addTerms, conversationTerm } from '../library/projection/search-words.ts';
import type { Passage, Troupe } from '../library/troupe.ts';

/** Events of one passage: the seqs from a multiple of it, plus 1. */
const PASSAGE_EVENTS = 32;
const PAGE = 10 * PASSAGE_EVENTS;

/**
 * Stores the passages of a log from the one that its standing ends in, up to `head`. A passage depends on the log alone, so
 * that it may be stored twice, and by any process.
 */
export async function indexWords(
  { standings, passages, events }: Pick<Troupe, 'standings' | 'passages' | 'events'>,
  conversation: string,
  head: number,
): Promise<void> {
  const known = await standings.seqOf(conversation);
  if (known >= head) return;
  let after = known - (known % PASSAGE_EVENTS);
  let open: OpenPassage | null = null;
  while (after < head) {
    const page = await events(conversation, { after, limit: Math.min(PAGE, head - after) });
    const done: Passage[] = [];
    for (const event of page.events) {
      open ??= { first: event.seq, terms: new Set([conversationTerm(conversation)]) };
      addTerms(event, open.terms);
      after = event.seq;
      if (event.seq % PASSAGE_EVENTS === 0 || event.seq >= head) {
        done.push(passageOf(open, event));
        open = null;
      }
    }
    if (done.length > 0) await passages.save(conversation, done);
    if (page.events.length === 0) return;
    // An embedded store answers at once, so others need a turn of the event loop.
    await setImmediate();
  }
}

interface OpenPassage {
  first: number;
  terms: Set<string>;
}

function passageOf({ first, terms }: OpenPassage, { seq, at }: Event): Passage {
  return { first, last: seq, at, terms: [...terms] };
}
