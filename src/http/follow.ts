import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import type { ConversationId, Event } from '../events/index.ts';
import type { Troupe } from '../troupe.ts';
import { Inbox, type Note } from './inbox.ts';

/** `gap`: events of a stream over all conversations were dropped, because the reader is too slow. */
export type Frame = Note | { type: 'heartbeat' } | { type: 'gap' };

export interface FollowOptions {
  troupe: Troupe;
  clock: Clock;
  signal: AbortSignal;
}

const HEARTBEAT_MS = 15_000;
/** How long a reader of the log waits for word of something new before it looks for itself: word may be lost. */
const LOOK_MS = 3_000;
const PAGE = 500;
/** Each slow reader keeps a page of its own waiting, while what is new is shared by all who watch. */
const FOLLOW_BYTES = 1024 * 1024;

/**
 * One conversation from `after` on, for ever: first what is stored, then what comes.
 * 1. Watching starts before the first read, so that nothing falls between the two.
 * 2. `sent` rises by one with each event. A live event with a seq at or below it was replayed already; one further
 *    ahead means that some were missed, and the log is read again. So none is lost or doubled.
 * 3. Without word for `LOOK_MS` the log is looked at: other processes write it too, and word of that may be lost.
 * 4. A conversation that does not exist yet is an empty one.
 */
export async function* followConversation(
  conversation: ConversationId,
  after: number,
  { troupe, clock, signal }: FollowOptions,
): AsyncGenerator<Frame, void> {
  const inbox = new Inbox(troupe, conversation);
  try {
    let sent = after;
    let isBehind = true;
    let quietMs = 0;
    while (!signal.aborted) {
      while (isBehind) {
        const { events, head } = await readPage(troupe, conversation, sent);
        isBehind = events.length > 0 && !signal.aborted;
        for (let event = events.shift(); event; event = events.shift()) {
          yield { type: 'event', event };
          sent = event.seq;
        }
        isBehind &&= sent < head;
      }
      const note = inbox.take();
      if (note?.type === 'delta' || note?.type === 'state') yield note;
      else if (note?.event.seq === sent + 1) {
        yield note;
        sent += 1;
      } else if (note) isBehind = note.event.seq > sent;
      else if (inbox.takeOverflow()) isBehind = true;
      else if (await inbox.wait(clock, LOOK_MS, signal)) quietMs = 0;
      else {
        isBehind = true;
        quietMs += LOOK_MS;
        if (quietMs % HEARTBEAT_MS === 0) yield { type: 'heartbeat' };
      }
    }
  } finally {
    inbox.close();
  }
}

/** What happens in all conversations from now on. */
export async function* followAll({ troupe, clock, signal }: FollowOptions): AsyncGenerator<Frame, void> {
  const inbox = new Inbox(troupe, null);
  try {
    while (!signal.aborted) {
      const note = inbox.take();
      if (note) yield note;
      else if (inbox.takeOverflow()) yield { type: 'gap' };
      else if (!(await inbox.wait(clock, HEARTBEAT_MS, signal))) yield { type: 'heartbeat' };
    }
  } finally {
    inbox.close();
  }
}

async function readPage(
  troupe: Troupe,
  conversation: ConversationId,
  after: number,
): Promise<{ events: Event[]; head: number }> {
  try {
    return await troupe.events(conversation, { after, limit: PAGE, maxBytes: FOLLOW_BYTES });
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { events: [], head: 0 };
    throw error;
  }
}
