import * as z from 'zod';
import type { ConversationId, EventId } from '../events/index.ts';
import type { Notes } from '../notes.ts';
import type { SignedEvent } from './nostr-event.ts';
import { type Place, placeOf } from './place.ts';

/** An event of the log. */
export interface LogPlace {
  conversation: ConversationId;
  event: EventId;
}

/** What of a signed event does not stand in the log. */
const Signed = z.strictObject({
  id: z.string(),
  pubkey: z.string(),
  created_at: z.int(),
  kind: z.int(),
  tags: z.array(z.array(z.string())),
  sig: z.string(),
});
const LogPlaceNote = z.strictObject({ conversation: z.string(), event: z.string() });

/**
 * Which of our words went out as which Nostr events.
 *  P1  An event is noted before it is published, both ways; so what comes back, or is answered, is known for ours.
 *  P2  What was noted first stays: every relay is given the very same event, however often it is tried.
 */
export interface Published {
  /** Null for an event that is not ours. */
  publishedAs(nostrId: string): Promise<LogPlace | null>;
  /** The event as it was signed first; null if it never was. */
  recall(said: LogPlace, content: string): Promise<SignedEvent | null>;
  /** Returns what counts: the given event, or one that was noted before. */
  note(said: LogPlace, signed: SignedEvent): Promise<SignedEvent>;
  /** Where one of our events stands in its thread. `relay`: as a hint. */
  place(said: LogPlace, relay: string): Promise<Place | null>;
}

export function createPublished(notes: Pick<Notes, 'recall' | 'remember'>): Published {
  async function read(said: LogPlace): Promise<z.infer<typeof Signed> | null> {
    const text = await notes.recall(saidKey(said));
    return text === null ? null : Signed.parse(JSON.parse(text));
  }

  async function point(id: string, { conversation, event }: LogPlace): Promise<void> {
    await notes.remember(outKey(id), null, JSON.stringify({ conversation, event }));
  }

  return {
    async publishedAs(nostrId) {
      const text = await notes.recall(outKey(nostrId));
      return text === null ? null : (LogPlaceNote.parse(JSON.parse(text)) as LogPlace);
    },
    async recall(said, content) {
      const signed = await read(said);
      if (!signed) return null;
      // A crash may have come between the two notes.
      await point(signed.id, said);
      return { ...signed, content };
    },
    async note(said, { content, ...signed }) {
      const text = await notes.remember(saidKey(said), null, JSON.stringify(signed));
      const kept = Signed.parse(JSON.parse(text));
      await point(kept.id, said);
      return { ...kept, content };
    },
    async place(said, relay) {
      const signed = await read(said);
      return signed && placeOf(signed, relay);
    },
  };
}

function outKey(id: string): string {
  return `nostr/out/${id}`;
}

function saidKey({ conversation, event }: LogPlace): string {
  return `nostr/said/${conversation}/${event}`;
}
