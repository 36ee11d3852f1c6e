import { TroupeError } from '../errors.ts';
import type { Event } from '../events/index.ts';
import type { Troupe } from '../troupe.ts';
import type { Cursor, Cursors } from './cursors.ts';
import type { Follower } from './follower.ts';

export interface HandOver {
  troupe: Pick<Troupe, 'events'>;
  cursors: Cursors;
  follower: Follower;
  /** Asked before each event. */
  goesOn: () => boolean;
  onDelivered: () => void;
  signal: AbortSignal;
}

const PAGE = 200;
/** Times of neighbours in a log may lie in the wrong order, if they are of several machines. */
const DISORDER_MS = 60_000;

/**
 * Hands over what is new of one conversation. True when its end was reached, or there is no such conversation; false
 * if it stopped before. Throws what `deliver` and the store throw, with all before that noted.
 */
export async function deliver(conversation: string, parts: HandOver): Promise<boolean> {
  const { cursors, follower, goesOn, signal } = parts;
  try {
    let cursor = (await cursors.of(conversation)) ?? (await findStart(conversation, parts));
    for (;;) {
      const { events, isLast } = await readAfter(conversation, cursor, parts);
      for (const event of events) {
        if (!goesOn()) return false;
        if (event.at >= follower.since && (follower.cares?.(event) ?? true)) {
          await follower.deliver(event, signal);
          parts.onDelivered();
        }
        cursor = event;
        if (!(await cursors.move(conversation, event))) return false;
      }
      if (isLast) return await cursors.save(conversation);
    }
  } catch (error) {
    if (!(error instanceof TroupeError && error.code === 'conversation_unknown')) throw error;
    cursors.forget(conversation);
    return true;
  } finally {
    await cursors.save(conversation);
  }
}

/**
 * What comes after the cursor. The event at the cursor is read too: if it is another, the conversation was deleted and
 * begun anew, and all of it is new.
 */
async function readAfter(
  conversation: string,
  { seq, id, at }: Cursor,
  { troupe }: Pick<HandOver, 'troupe'>,
): Promise<{ events: Event[]; isLast: boolean }> {
  const isSure = id === undefined;
  const after = isSure ? seq : seq - 1;
  const { events, head } = await troupe.events(conversation, { after, limit: PAGE });
  // Large events make a short page.
  const isLast = (events.at(-1)?.seq ?? head) >= head;
  if (isSure) return { events, isLast };
  const [last, ...rest] = events;
  const isSame = last?.id === id && last?.at === at;
  if (isSame && (rest.length > 0 || isLast)) return { events: rest, isLast };
  if (isSame) return readAfter(conversation, { seq }, { troupe });
  return readAfter(conversation, { seq: 0 }, { troupe });
}

/** Back from the end in growing steps, to where all is older than `since`: a long log is not read for its last lines. */
async function findStart(conversation: string, { troupe, follower }: HandOver): Promise<Cursor> {
  const { head } = await troupe.events(conversation, { limit: 1 });
  for (let back = PAGE; back < head; back *= 2) {
    const { events } = await troupe.events(conversation, { after: head - back, limit: PAGE });
    if (events.every(({ at }) => at < follower.since - DISORDER_MS)) return { seq: head - back };
  }
  return { seq: 0 };
}
